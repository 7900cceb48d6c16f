#!/bin/sh
# mcp 2.3.0 (PyPI): a server that ignores requests which it does not know costs each connection ten seconds.
#
# Expected: the client begins with `initialize`, as all versions of the protocol until 2025-11-25 want it.
# Seen: it begins with `server/discover`. An error is answered with `initialize` at once, silence after 10 s.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip --quiet --disable-pip-version-check install mcp==2.3.0
cat >server.py <<'PYTHON'
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
    elif "id" in request and sys.argv[1] == "answers":
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
PYTHON
cat >client.py <<'PYTHON'
import asyncio, sys, time
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    begun = time.monotonic()
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=["server.py", sys.argv[1]]))):
        print(round(time.monotonic() - begun))
asyncio.run(main())
PYTHON
answers=$(venv/bin/python3 client.py answers 2>/dev/null) silent=$(venv/bin/python3 client.py is-silent 2>/dev/null)
echo "mcp 2.3.0: seconds to connect to a server that answers: $answers, that is silent: $silent"
[ "$answers" -le 3 ] && [ "$silent" -ge 10 ] && [ "$silent" -le 14 ]
