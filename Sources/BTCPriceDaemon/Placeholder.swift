enum BTCPriceDaemonPlaceholder {}
