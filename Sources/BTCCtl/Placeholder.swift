enum BTCCtlPlaceholder {}
