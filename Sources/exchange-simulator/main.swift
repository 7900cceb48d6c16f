import ExchangeSimulator

await SimulatorProgram.main()
