import ExchangeSimulator

await SimulatorCommand.main()
