// Logs in on a router and reports how that ended. ../README.md says how the peers are told and what they report.
//
// login.js --host HOST --port PORT [--user USER [--password PASSWORD]] [--ca FILE --cert FILE --key FILE]
'use strict';

const { readFileSync } = require('fs');
const { parseArgs } = require('util');
const container = require('rhea').create_container();

const { values: options } = parseArgs({
    options: {
        host: { type: 'string' }, port: { type: 'string' },
        user: { type: 'string' }, password: { type: 'string' },
        ca: { type: 'string' }, cert: { type: 'string' }, key: { type: 'string' },
    },
});

function report(event, fields) {
    console.log(JSON.stringify({ event, ...fields }));
}

container.on('connection_open', context => {
    report('opened', {});
    context.connection.close();
});
container.on('connection_error', context => report('refused', { condition: context.error && context.error.condition }));
container.on('error', error => report('refused', { condition: String(error) }));
container.on('disconnected', context => {
    if (context.error) report('refused', { condition: String(context.error) });
});
const tls = options.ca ? {
    transport: 'tls', servername: options.host, rejectUnauthorized: true,
    ca: [readFileSync(options.ca)], cert: readFileSync(options.cert), key: readFileSync(options.key),
    enable_sasl_external: true,
} : {};
container.connect({
    ...tls,
    host: options.host, port: Number(options.port), reconnect: false,
    username: options.user, password: options.password,
});
