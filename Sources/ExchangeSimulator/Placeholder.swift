enum ExchangeSimulatorPlaceholder {}
