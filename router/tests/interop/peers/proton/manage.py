"""A management client on Qpid Proton for Python, as qdmanage and qdstat are: Proton's synchronous requests and replies
to $management. Each line of standard input is a request, a JSON list of application properties and body; each line of
standard output its reply, a JSON object of status, description and body."""

import json
import sys

from proton import Message
from proton.utils import BlockingConnection, SyncRequestResponse

connection = BlockingConnection(sys.argv[1], timeout=30)
client = SyncRequestResponse(connection, sys.argv[2] if len(sys.argv) > 2 else "$management")
print(json.dumps({"reply_to": client.reply_to}), flush=True)
for line in sys.stdin:
    properties, body = json.loads(line)
    reply = client.call(Message(properties=properties, body=body))
    print(
        json.dumps(
            {
                "status": int(reply.properties["statusCode"]),
                "description": reply.properties["statusDescription"],
                "body": reply.body,
            }
        ),
        flush=True,
    )
connection.close()
