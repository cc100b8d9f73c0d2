"""Interop peer on Qpid Proton for Python. ../README.md says what it is told and what it reports."""

import argparse
import hashlib
import json
import os
import sys
import threading

from proton import Condition, Delivery, Message, symbol, ulong
from proton.handlers import MessagingHandler
from proton.reactor import ApplicationEvent, AtLeastOnce, AtMostOnce, Container
from proton.reactor import EventInjector, LinkOption

PATTERN_LENGTH = 251
STATES = {
    Delivery.ACCEPTED: "accepted",
    Delivery.REJECTED: "rejected",
    Delivery.RELEASED: "released",
    Delivery.MODIFIED: "modified",
}


def body_of(index, size):
    pattern = bytes((index + 7 * j) % 256 for j in range(PATTERN_LENGTH))
    return (pattern * (size // PATTERN_LENGTH + 1))[:size]


def plain(value):
    """AMQP data as the nearest JSON value."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return repr(value)


def report(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


def fail(why):
    report("failed", why=why)
    # The reactor may be anywhere in its loop; nothing is left that an orderly end would save.
    os._exit(1)


class DynamicSource(LinkOption):
    def apply(self, link):
        link.source.dynamic = True


class Peer(MessagingHandler):
    """What all roles share: connecting, the refused attach that may come first, and the orderly end."""

    def __init__(self, options):
        # Credit and outcomes are given by hand: they are what the scenarios are about.
        super().__init__(prefetch=0, auto_accept=False, auto_settle=True)
        self.options = options
        self.connection = None
        self.session = None
        self.refused_link = None
        self.closing = False

    def on_start(self, event):
        self.container = event.container
        self.injector = EventInjector()
        self.container.selectable(self.injector)
        threading.Thread(target=self.read_input, daemon=True).start()
        connect_options = {"reconnect": False, "allowed_mechs": "ANONYMOUS"}
        if self.options.max_frame_size:
            connect_options["max_frame_size"] = self.options.max_frame_size
        self.connection = self.container.connect(self.options.url, **connect_options)
        self.session = self.connection.session()
        if self.options.incoming_window:
            # Proton counts its window in bytes and divides by its max-frame-size.
            self.session.incoming_capacity = self.options.incoming_window * self.options.max_frame_size
        self.session.open()

    def read_input(self):
        for line in sys.stdin:
            self.injector.trigger(ApplicationEvent(line.strip()))
        self.injector.trigger(ApplicationEvent("stop"))

    def on_connection_opened(self, event):
        if self.options.refused:
            self.refused_link = self.attach(self.options.refused)
        else:
            self.begin()

    def on_link_error(self, event):
        condition = event.link.remote_condition
        if event.link != self.refused_link:
            fail(f"link detached: {condition}")
        report("refused", condition=condition.name, description=condition.description)
        event.link.close()
        self.refused_link = None
        self.begin()

    def on_link_closing(self, event):
        if not self.closing:
            fail("link detached without an error")

    def on_session_error(self, event):
        fail(f"session ended: {event.session.remote_condition}")

    def on_connection_error(self, event):
        fail(f"connection closed: {event.connection.remote_condition}")

    def on_transport_error(self, event):
        fail(f"transport: {event.transport.condition}")

    def on_stop(self, event):
        self.finish()

    def finish(self):
        if not self.closing:
            self.closing = True
            self.connection.close()

    def on_connection_closed(self, event):
        if not self.closing:
            fail("connection closed without an error")
        report("done")
        self.injector.close()

    def on_disconnected(self, event):
        if not self.closing:
            fail("disconnected")


class Send(Peer):
    def __init__(self, options):
        super().__init__(options)
        self.sender = None
        self.sent = 0
        self.settled = 0
        self.paused = False
        self.ids = {}

    def attach(self, address):
        mode = AtMostOnce() if self.options.presettled else AtLeastOnce()
        return self.container.create_sender(self.session, address, options=mode)

    def begin(self):
        self.sender = self.attach(None if self.options.to else self.options.address)

    def on_sendable(self, event):
        if event.link == self.sender:
            self.send_more()

    def on_link_flow(self, event):
        # Proton leaves it to the application to give drained credit back.
        if event.link.is_sender and event.link.drain_mode and event.link.credit:
            event.link.drained()

    def send_more(self):
        options = self.options
        while self.sent < options.count and self.sender.credit and not self.paused:
            index = self.sent
            message = Message(
                id=ulong(index),
                subject=f"message {index}",
                body=body_of(index, options.size),
                inferred=True,
            )
            if options.to:
                message.address = options.to[index % len(options.to)]
            self.ids[self.sender.send(message).tag] = index
            self.sent += 1
            if self.sent == options.pause_after:
                self.paused = True
                report("paused", sent=self.sent)
        if self.sent == options.count and options.presettled:
            self.finish()

    def on_go(self, event):
        self.paused = False
        self.send_more()

    def on_settled(self, event):
        delivery = event.delivery
        outcome = STATES.get(delivery.remote_state, str(delivery.remote_state))
        fields = {}
        if outcome == "rejected":
            condition = delivery.remote.condition
            if condition is not None:
                fields = {
                    "condition": condition.name,
                    "description": condition.description,
                    "info": plain(condition.info),
                }
        elif outcome == "modified":
            fields = {
                "delivery_failed": delivery.remote.failed,
                "undeliverable_here": delivery.remote.undeliverable,
                "annotations": plain(delivery.remote.annotations),
            }
        report("outcome", id=self.ids.pop(delivery.tag), outcome=outcome, **fields)
        self.settled += 1
        if self.settled == self.options.count:
            self.finish()


class Receive(Peer):
    def __init__(self, options):
        super().__init__(options)
        self.receiver = None
        self.received = 0
        self.draining = False

    def attach(self, address):
        return self.container.create_receiver(self.session, address)

    def begin(self):
        self.receiver = self.attach(self.options.address)

    def on_link_opened(self, event):
        if event.link == self.receiver:
            self.receiver.flow(self.options.credit)
            report("ready")

    def on_message(self, event):
        message, delivery = event.message, event.delivery
        body = bytes(message.body)
        report(
            "received",
            id=plain(message.id),
            subject=message.subject,
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            settled=delivery.settled,
        )
        self.settle(delivery, self.options.outcomes[self.received % len(self.options.outcomes)])
        self.received += 1
        if self.options.drain_after:
            if self.received == self.options.drain_after:
                self.draining = True
                self.receiver.drain(0)
        else:
            self.top_up()

    def top_up(self):
        if self.receiver.credit <= self.options.credit // 2:
            self.receiver.flow(self.options.credit - self.receiver.credit)

    def on_link_flow(self, event):
        if self.draining and event.link == self.receiver and event.link.credit == 0:
            self.draining = False
            report("drained", received=self.received, credit=event.link.credit)
            self.receiver.flow(self.options.credit)

    @staticmethod
    def settle(delivery, outcome):
        if outcome == "accepted":
            state = Delivery.ACCEPTED
        elif outcome == "rejected":
            info = {symbol("reason"): "taste", symbol("tries"): 3, symbol("final"): True}
            delivery.local.condition = Condition("interop:refused", "no thanks", info)
            state = Delivery.REJECTED
        elif outcome == "rejected-bare":
            state = Delivery.REJECTED
        elif outcome == "released":
            state = Delivery.RELEASED
        elif outcome == "modified":
            delivery.local.failed = True
            delivery.local.undeliverable = True
            delivery.local.annotations = {symbol("x-opt-reason"): "taste", symbol("x-opt-tries"): 3}
            state = Delivery.MODIFIED
        elif outcome == "modified-bare":
            delivery.local.failed = True
            state = Delivery.MODIFIED
        else:
            fail(f"unknown outcome {outcome}")
        delivery.update(state)
        delivery.settle()


class Respond(Receive):
    def __init__(self, options):
        super().__init__(options)
        self.senders = {}
        self.waiting = []

    def on_message(self, event):
        request = event.message
        body = bytes(request.body)
        report(
            "received",
            id=plain(request.id),
            subject=request.subject,
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            settled=event.delivery.settled,
            reply_to=request.reply_to,
        )
        reply = Message(address=request.reply_to, correlation_id=request.id, body=body, inferred=True)
        self.waiting.append(reply)
        target = None if self.options.anonymous else request.reply_to
        if target not in self.senders:
            self.senders[target] = self.container.create_sender(self.session, target)
        self.settle(event.delivery, "accepted")
        self.top_up()
        self.reply()

    def on_sendable(self, event):
        self.reply()

    def reply(self):
        for reply in list(self.waiting):
            sender = self.senders[None if self.options.anonymous else reply.address]
            if sender.credit:
                sender.send(reply)
                self.waiting.remove(reply)


class Request(Peer):
    def __init__(self, options):
        super().__init__(options)
        self.sender = None
        self.receiver = None
        self.sent = 0
        self.replied = 0

    def attach(self, address):
        return self.container.create_sender(self.session, address)

    def begin(self):
        self.receiver = self.container.create_receiver(self.session, options=DynamicSource())

    def on_link_opened(self, event):
        if event.link == self.receiver:
            self.receiver.flow(self.options.credit)
            report("ready", address=self.receiver.remote_source.address)
            self.sender = self.attach(self.options.address)

    def on_sendable(self, event):
        if event.link == self.sender:
            self.request()

    def request(self):
        if self.sent == self.replied and self.sent < self.options.count and self.sender.credit:
            message = Message(
                id=ulong(self.sent),
                subject=f"message {self.sent}",
                reply_to=self.receiver.remote_source.address,
                body=body_of(self.sent, self.options.size),
                inferred=True,
            )
            self.sender.send(message)
            self.sent += 1

    def on_released(self, event):
        fail("request released")

    def on_rejected(self, event):
        fail("request rejected")

    def on_message(self, event):
        body = bytes(event.message.body)
        report(
            "reply",
            id=plain(event.message.correlation_id),
            size=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
        )
        Receive.settle(event.delivery, "accepted")
        self.replied += 1
        if self.replied == self.options.count:
            self.finish()
        else:
            self.request()


def main():
    roles = {"send": Send, "receive": Receive, "request": Request, "respond": Respond}

    def listed(text):
        return text.split(",")

    parser = argparse.ArgumentParser()
    parser.add_argument("role", choices=roles)
    parser.add_argument("--url", required=True)
    parser.add_argument("--address")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--presettled", action="store_true")
    parser.add_argument("--to", type=listed)
    parser.add_argument("--pause-after", type=int)
    parser.add_argument("--credit", type=int, default=100)
    parser.add_argument("--drain-after", type=int)
    parser.add_argument("--outcomes", type=listed, default=["accepted"])
    parser.add_argument("--anonymous", action="store_true")
    parser.add_argument("--max-frame-size", type=int)
    parser.add_argument("--incoming-window", type=int)
    parser.add_argument("--refused")
    options = parser.parse_args()
    Container(roles[options.role](options)).run()


main()
