// Interop peer on rhea. ../README.md says what it is told and what it reports.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const readline = require('readline');
const { parseArgs } = require('util');
const container = require('rhea').create_container();
const { message: messages, types } = require('rhea');

const PATTERN_LENGTH = 251;

function bodyOf(index, size) {
    const pattern = Buffer.alloc(PATTERN_LENGTH);
    for (let j = 0; j < PATTERN_LENGTH; j++) pattern[j] = (index + 7 * j) % 256;
    return Buffer.alloc(size, pattern);
}

// Written at once, not through the stream: nothing may be lost when the process ends.
function report(event, fields) {
    const line = Buffer.from(JSON.stringify({ event, ...fields }) + '\n');
    for (let from = 0; from < line.length;) {
        try {
            from += fs.writeSync(1, line, from);
        } catch (error) {
            if (error.code !== 'EAGAIN') throw error;
        }
    }
}

function fail(why) {
    report('failed', { why });
    process.exit(1);
}

// AMQP data as the nearest JSON value: rhea unwraps all but what it doesn't know.
function plain(value) {
    return value === undefined ? null : value;
}

function contentOf(message) {
    // A data section of one part arrives as { typecode: 0x75, content: Buffer }.
    const body = message.body && message.body.content !== undefined ? message.body.content : message.body;
    if (!Buffer.isBuffer(body)) fail(`the body is not one data section: ${JSON.stringify(message)}`);
    return { size: body.length, sha256: crypto.createHash('sha256').update(body).digest('hex') };
}

// Through `delivery.reject` rhea writes the keys of `info` as strings, where AMQP 1.0 §2.8.14 has symbols.
function rejected() {
    const state = messages.rejected({ error: { condition: 'interop:refused', description: 'no thanks' } }).described();
    const error = state.value[0];
    error.value.push(types.wrap_symbolic_map({ reason: 'taste', tries: 3, final: true }));
    return state;
}

function settle(delivery, outcome) {
    switch (outcome) {
    case 'accepted':
        return delivery.accept();
    case 'rejected':
        return delivery.update(undefined, rejected());
    case 'rejected-bare':
        return delivery.reject();
    case 'released':
        return delivery.release();
    case 'modified':
        return delivery.modified({
            delivery_failed: true,
            undeliverable_here: true,
            message_annotations: { 'x-opt-reason': 'taste', 'x-opt-tries': 3 },
        });
    case 'modified-bare':
        return delivery.modified({ delivery_failed: true });
    default:
        return fail(`unknown outcome ${outcome}`);
    }
}

// What all roles share: connecting, the refused attach that may come first, and the orderly end.
class Peer {
    constructor(options) {
        this.options = options;
        this.closing = false;
    }

    start() {
        const url = new URL(this.options.url);
        const settings = {
            host: url.hostname,
            port: Number(url.port),
            // A user name without a password makes rhea log in with ANONYMOUS.
            username: 'anonymous',
            reconnect: false,
        };
        // Over WebSocket (ws://HOST:PORT) rhea goes through the client of the package ws.
        if (url.protocol === 'ws:') {
            const connect = container.websocket_connect(require('ws'));
            settings.connection_details = connect(this.options.url, this.options.protocol);
        }
        if (this.options.maxFrameSize) settings.max_frame_size = this.options.maxFrameSize;
        // rhea's window is what is free in its buffer of incoming deliveries.
        if (this.options.incomingWindow) settings.session_buffer_size = { incoming: this.options.incomingWindow };
        container.on('connection_open', () => (this.options.refused ? this.tryRefused() : this.begin()));
        container.on('connection_error', (context) => fail(`connection closed: ${context.connection.error}`));
        container.on('session_error', (context) => fail(`session ended: ${context.session.error}`));
        container.on('error', (error) => fail(`${error.name}: ${error.message}`));
        container.on('connection_close', () => {
            if (!this.closing) fail('connection closed without an error');
            report('done');
            process.exit(0);
        });
        container.on('disconnected', () => fail('disconnected'));
        this.connection = container.connect(settings);
        const input = readline.createInterface({ input: process.stdin });
        input.on('line', (line) => (line === 'go' ? this.go() : this.finish()));
        input.on('close', () => this.finish());
    }

    watch(link) {
        const lost = (context) => {
            const end = context.sender || context.receiver;
            if (!this.closing) fail(`link detached: ${end.error}`);
        };
        link.on(link.is_sender() ? 'sender_close' : 'receiver_close', lost);
        link.on(link.is_sender() ? 'sender_error' : 'receiver_error', lost);
        return link;
    }

    tryRefused() {
        const link = this.attach(this.options.refused);
        let error;
        link.on(link.is_sender() ? 'sender_error' : 'receiver_error', () => {
            error = link.error;
        });
        link.on(link.is_sender() ? 'sender_close' : 'receiver_close', () => {
            if (!error) fail('the link to --refused was detached without an error');
            report('refused', { condition: error.condition, description: error.description });
            this.begin();
        });
    }

    go() {
        fail('told to go, but not paused');
    }

    finish() {
        if (this.closing) return;
        this.closing = true;
        this.connection.close();
    }
}

class Send extends Peer {
    constructor(options) {
        super(options);
        this.sent = 0;
        this.settled = 0;
        this.paused = false;
        this.ids = new Map();
    }

    attach(address) {
        const settings = { snd_settle_mode: this.options.presettled ? 1 : 0, treat_modified_as_released: false };
        settings.target = address === undefined ? {} : { address };
        return this.connection.open_sender(settings);
    }

    begin() {
        this.sender = this.watch(this.attach(this.options.to ? undefined : this.options.address));
        this.sender.on('sendable', () => this.sendMore());
        this.sender.on('settled', (context) => this.onSettled(context.delivery));
    }

    sendMore() {
        // rhea takes credit off only when it writes, which is after this turn: so count here.
        let allowed = Math.min(this.sender.credit, this.sender.session.outgoing.available());
        while (this.sent < this.options.count && allowed > 0 && !this.paused) {
            const index = this.sent;
            const message = {
                message_id: types.wrap_ulong(index),
                subject: `message ${index}`,
                body: messages.data_section(bodyOf(index, this.options.size)),
            };
            if (this.options.to) message.to = this.options.to[index % this.options.to.length];
            this.ids.set(this.sender.send(message), index);
            allowed--;
            this.sent++;
            if (this.sent === this.options.pauseAfter) {
                this.paused = true;
                report('paused', { sent: this.sent });
            }
        }
        if (this.sent === this.options.count && this.options.presettled) this.finishWhenWritten();
    }

    // rhea would close over what it still holds, and tells nobody when a pre-settled delivery has left.
    finishWhenWritten() {
        if (this.sender.session.outgoing.deliveries.size === 0) this.finish();
        else setTimeout(() => this.finishWhenWritten(), 5);
    }

    go() {
        this.paused = false;
        this.sendMore();
    }

    onSettled(delivery) {
        const state = delivery.remote_state;
        const outcome = state === undefined ? 'none' : state.constructor.composite_type;
        let data = {};
        if (outcome === 'rejected' && state.error) {
            data = {
                condition: state.error.condition,
                description: state.error.description,
                info: plain(state.error.info),
            };
        } else if (outcome === 'modified') {
            data = {
                delivery_failed: Boolean(state.delivery_failed),
                undeliverable_here: Boolean(state.undeliverable_here),
                annotations: plain(state.message_annotations),
            };
        }
        report('outcome', { id: this.ids.get(delivery), outcome, ...data });
        this.ids.delete(delivery);
        this.settled++;
        if (this.settled === this.options.count) this.finish();
        else this.sendMore();
    }
}

class Receive extends Peer {
    constructor(options) {
        super(options);
        this.received = 0;
        this.unsettled = [];
    }

    attach(address) {
        // Credit and outcomes are given by hand: they are what the scenarios are about.
        return this.connection.open_receiver({ source: { address }, credit_window: 0, autoaccept: false });
    }

    begin() {
        this.receiver = this.watch(this.attach(this.options.address));
        this.receiver.on('receiver_open', () => {
            this.receiver.add_credit(this.options.credit);
            report('ready');
        });
        this.receiver.on('message', (context) => this.onMessage(context));
        this.receiver.on('receiver_drained', () => this.onDrained());
    }

    onMessage({ message, delivery }) {
        report('received', {
            id: message.message_id,
            subject: message.subject,
            ...contentOf(message),
            settled: Boolean(delivery.remote_settled),
            reply_to: message.reply_to,
        });
        const outcome = this.options.outcomes[this.received % this.options.outcomes.length];
        if (this.options.outcomes.length === 1) settle(delivery, outcome);
        else this.settleApart(delivery, outcome);
        this.received++;
        if (!this.options.drainAfter) this.topUp();
        else if (this.received === this.options.drainAfter) this.receiver.drain_credit();
    }

    // rhea 3.0.5 writes two successive deliveries that are settled in one turn as one range with the first one's outcome,
    // also where the second one's differs. So each gets a turn of its own.
    settleApart(delivery, outcome) {
        this.unsettled.push({ delivery, outcome });
        if (this.unsettled.length > 1) return;
        const next = () => {
            const { delivery, outcome } = this.unsettled[0];
            settle(delivery, outcome);
            setImmediate(() => {
                this.unsettled.shift();
                if (this.unsettled.length > 0) next();
            });
        };
        next();
    }

    topUp() {
        const left = this.receiver.credit;
        if (left <= Math.floor(this.options.credit / 2)) this.receiver.add_credit(this.options.credit - left);
    }

    onDrained() {
        report('drained', { received: this.received, credit: this.receiver.credit });
        this.receiver.drain = false;
        this.receiver.add_credit(this.options.credit);
    }
}

class Respond extends Receive {
    constructor(options) {
        super(options);
        this.senders = new Map();
        this.waiting = [];
    }

    onMessage(context) {
        super.onMessage(context);
        const request = context.message;
        const address = this.options.anonymous ? undefined : request.reply_to;
        this.waiting.push({
            address,
            message: { to: request.reply_to, correlation_id: types.wrap_ulong(request.message_id), body: request.body },
        });
        if (!this.senders.has(address)) {
            const sender = this.connection.open_sender({ target: address === undefined ? {} : { address } });
            this.senders.set(address, this.watch(sender));
            sender.on('sendable', () => this.reply());
        }
        this.reply();
    }

    reply() {
        this.waiting = this.waiting.filter(({ address, message }) => {
            const sender = this.senders.get(address);
            if (!sender.sendable()) return true;
            sender.send(message);
            return false;
        });
    }
}

class Request extends Peer {
    constructor(options) {
        super(options);
        this.sent = 0;
        this.replied = 0;
    }

    attach(address) {
        return this.connection.open_sender({ target: { address } });
    }

    begin() {
        this.receiver = this.watch(this.connection.open_receiver({ source: { dynamic: true }, credit_window: 0 }));
        this.receiver.on('receiver_open', () => {
            this.receiver.add_credit(this.options.credit);
            report('ready', { address: this.receiver.source.address });
            this.sender = this.watch(this.attach(this.options.address));
            this.sender.on('sendable', () => this.request());
            for (const outcome of ['rejected', 'released', 'modified']) {
                this.sender.on(outcome, () => fail(`request ${outcome}`));
            }
        });
        this.receiver.on('message', ({ message }) => this.onReply(message));
    }

    request() {
        if (this.sent !== this.replied || this.sent === this.options.count || !this.sender.sendable()) return;
        this.sender.send({
            message_id: types.wrap_ulong(this.sent),
            subject: `message ${this.sent}`,
            reply_to: this.receiver.source.address,
            body: messages.data_section(bodyOf(this.sent, this.options.size)),
        });
        this.sent++;
    }

    onReply(message) {
        report('reply', { id: message.correlation_id, ...contentOf(message) });
        this.replied++;
        if (this.replied === this.options.count) this.finish();
        else this.request();
    }
}

function main() {
    const { values, positionals } = parseArgs({
        allowPositionals: true,
        options: {
            url: { type: 'string' },
            protocol: { type: 'string', default: 'amqp' },
            address: { type: 'string' },
            count: { type: 'string', default: '1' },
            size: { type: 'string', default: '100' },
            presettled: { type: 'boolean', default: false },
            to: { type: 'string' },
            'pause-after': { type: 'string' },
            credit: { type: 'string', default: '100' },
            'drain-after': { type: 'string' },
            outcomes: { type: 'string', default: 'accepted' },
            anonymous: { type: 'boolean', default: false },
            'max-frame-size': { type: 'string' },
            'incoming-window': { type: 'string' },
            refused: { type: 'string' },
        },
    });
    const number = (text) => (text === undefined ? undefined : Number(text));
    const options = {
        url: values.url,
        protocol: values.protocol.split(','),
        address: values.address,
        count: number(values.count),
        size: number(values.size),
        presettled: values.presettled,
        to: values.to === undefined ? undefined : values.to.split(','),
        pauseAfter: number(values['pause-after']),
        credit: number(values.credit),
        drainAfter: number(values['drain-after']),
        outcomes: values.outcomes.split(','),
        anonymous: values.anonymous,
        maxFrameSize: number(values['max-frame-size']),
        incomingWindow: number(values['incoming-window']),
        refused: values.refused,
    };
    const roles = { send: Send, receive: Receive, request: Request, respond: Respond };
    const role = roles[positionals[0]];
    if (!role || !options.url) fail(`usage: peer.js ${Object.keys(roles).join('|')} --url URL …`);
    new role(options).start();
}

main();
