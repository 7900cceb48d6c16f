import BTCPriceDaemon
import CommandLine

Daemon.main(
    arguments: Array(Swift.CommandLine.arguments.dropFirst()), environment: processEnvironment())
