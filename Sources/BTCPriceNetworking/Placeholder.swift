import AsyncHTTPClient
import NIOCore
import NIOPosix
import NIOHTTP1
