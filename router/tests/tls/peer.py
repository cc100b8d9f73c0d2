"""One end of TLS, by Python's ssl: says in JSON, one line each, what came of it.

peer.py client PORT [--ca FILE] [--cert FILE] [--key FILE] [--only 1.2|1.3] [--prelude HEX] [--end notify|fin|close]
peer.py server CERT KEY COUNT [--ca FILE]
"""
import argparse
import json
import socket
import ssl
import sys

AMQP = bytes.fromhex("414d515000010000")
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def say(**facts):
    print(json.dumps(facts), flush=True)


def all_of(sock, count):
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            break
        data += more
    return data


def client(options):
    context = ssl.create_default_context(cafile=options.ca)
    if options.cert:
        context.load_cert_chain(options.cert, options.key)
    if options.only:
        context.minimum_version = context.maximum_version = VERSIONS[options.only]
    sock = socket.create_connection(("127.0.0.1", options.port), timeout=20)
    facts = {}
    if options.prelude:
        sock.sendall(bytes.fromhex(options.prelude))
        facts["header"] = all_of(sock, 8).hex()
    try:
        tls = context.wrap_socket(sock, server_hostname="localhost", suppress_ragged_eofs=False)
        facts.update(version=tls.version(), cipher=tls.cipher()[0], serial=tls.getpeercert()["serialNumber"])
        # In two records, and the second in two pieces.
        tls.sendall(AMQP[:3])
        tls.sendall(AMQP[3:])
        facts["answer"] = all_of(tls, 8).hex()
        if options.end == "notify":
            # Returns when the other end has said that nothing more comes, too.
            facts["left"] = tls.unwrap().recv(100).hex()
        elif options.end == "fin":
            tls.shutdown(socket.SHUT_WR)
            facts["ended"] = True
            while tls.recv(1000):
                pass
    except (ssl.SSLError, OSError) as error:
        facts["error"] = getattr(error, "reason", None) or str(error)
    say(**facts)


def server(options):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.cert, options.key)
    names = []
    context.sni_callback = lambda _tls, name, _context: names.append(name)
    if options.ca:
        context.load_verify_locations(options.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))
    say(port=listener.getsockname()[1])
    for _ in range(options.count):
        sock, _ = listener.accept()
        sock.settimeout(20)
        facts = {}
        try:
            tls = context.wrap_socket(sock, server_side=True)
            facts.update(version=tls.version(), sni=names[-1], first=all_of(tls, 8).hex())
            certificate = tls.getpeercert()
            if certificate:
                facts["peer"] = dict(pair for part in certificate["subject"] for pair in part)["commonName"]
            tls.close()
        except (ssl.SSLError, OSError) as error:
            facts["error"] = getattr(error, "reason", None) or str(error)
        say(**facts)


parser = argparse.ArgumentParser()
kinds = parser.add_subparsers(dest="kind", required=True)
for kind in ("client", "server"):
    one = kinds.add_parser(kind)
    if kind == "client":
        one.add_argument("port", type=int)
        one.add_argument("--cert")
        one.add_argument("--key")
        one.add_argument("--only")
        one.add_argument("--prelude")
        one.add_argument("--end", default="close")
    else:
        one.add_argument("cert")
        one.add_argument("key")
        one.add_argument("count", type=int)
    one.add_argument("--ca")
arguments = parser.parse_args()
client(arguments) if arguments.kind == "client" else server(arguments)
