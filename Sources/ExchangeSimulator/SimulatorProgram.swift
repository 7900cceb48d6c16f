import ArgumentParser

/// The entry point of the simulator.
package enum SimulatorProgram {
    /// Reads the command line and runs until SIGTERM or SIGINT.
    package static func main() async {
        await SimulatorCommand.main()
    }
}
