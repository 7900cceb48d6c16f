enum BTCPriceFeaturePlaceholder {}
