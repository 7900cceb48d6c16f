enum BTCPricePersistencePlaceholder {}
