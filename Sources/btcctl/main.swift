import Glibc

exit(BTCCtl.main(arguments: Array(CommandLine.arguments.dropFirst())))
