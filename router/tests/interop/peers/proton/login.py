"""Logs in on a router and reports how that ended. ../README.md says how the peers are told and what they report.

login.py --url URL --mechanisms 'A B' [--user USER --password PASSWORD] [--ca FILE --cert FILE --key FILE]
"""
import argparse
import json

from proton import SASL, SSLDomain
from proton.handlers import MessagingHandler
from proton.reactor import Container


def report(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Login(MessagingHandler):
    def __init__(self, options):
        super().__init__()
        self.options = options

    def on_start(self, event):
        options = self.options
        login = {"user": options.user, "password": options.password} if options.user else {}
        if options.ca:
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_trusted_ca_db(options.ca)
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
            domain.set_credentials(options.cert, options.key, None)
            login["ssl_domain"] = domain
        event.container.connect(
            options.url, reconnect=False, sasl_enabled=True, allowed_mechs=options.mechanisms,
            allow_insecure_mechs=True, **login)

    def on_connection_opened(self, event):
        report("opened", mechanism=event.transport.sasl().mech, user=event.transport.sasl().user)
        event.connection.close()

    def on_transport_error(self, event):
        condition = event.transport.condition
        report("refused", condition=condition.name, description=condition.description)


parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
parser.add_argument("--mechanisms", required=True)
parser.add_argument("--user")
parser.add_argument("--password")
parser.add_argument("--ca")
parser.add_argument("--cert")
parser.add_argument("--key")
arguments = parser.parse_args()
if not SASL.extended():
    report("failed", why="this Proton was built without Cyrus SASL (libsasl2-dev)")
else:
    Container(Login(arguments)).run()
