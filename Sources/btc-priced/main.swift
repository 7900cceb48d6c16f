import BTCPriceDaemon
import FoundationEssentials
import Glibc

exit(
    await Daemon.main(
        arguments: Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment))
