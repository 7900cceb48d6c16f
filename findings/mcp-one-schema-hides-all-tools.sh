#!/bin/sh
# mcp 2.3.0 (PyPI): one tool whose outputSchema has `anyOf` at its top makes the list of all tools fail, but only in the earlier era.
#
# Expected: the schema of one tool concerns that tool; any JSON Schema is allowed, as in mcp 1.30.0.
# Seen: with mode "legacy" (2025-11-25) tools/list raises a ValidationError, with mode "2026-07-28" it has both tools.
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
    method, later = request["method"], "_meta" in request.get("params", {})
    if "id" not in request:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        tool = {"inputSchema": {"type": "object"}}
        result = {"tools": [{"name": "plain", **tool}, {"name": "either", **tool, "outputSchema": {"anyOf": [{"type": "object"}, {"type": "null"}]}}]}
        if later:
            result.update(resultType="complete", ttlMs=0, cacheScope="private")
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
PYTHON
cat >client.py <<'PYTHON'
import asyncio, sys
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
async def main():
    async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=["server.py"])), mode=sys.argv[1]) as client:
        try:
            print(*[tool.name for tool in (await client.list_tools()).tools])
        except Exception as error:
            print(type(error).__name__)
asyncio.run(main())
PYTHON
legacy=$(venv/bin/python3 client.py legacy 2>/dev/null) later=$(venv/bin/python3 client.py 2026-07-28 2>/dev/null)
echo "mcp 2.3.0: 2025-11-25: $legacy; 2026-07-28: $later"
[ "$legacy" = ValidationError ] && [ "$later" = "plain either" ]
