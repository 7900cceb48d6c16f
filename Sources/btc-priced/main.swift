import BTCPriceDaemon
import FoundationEssentials

Daemon.main(
    arguments: Array(CommandLine.arguments.dropFirst()), environment: ProcessInfo.processInfo.environment)
