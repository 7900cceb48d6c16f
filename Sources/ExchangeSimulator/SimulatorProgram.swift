import ArgumentParser

/// The simulator as a program.
public enum SimulatorProgram {
    /// Reads the command line and runs until it is told to stop.
    public static func main() async {
        await SimulatorCommand.main()
    }
}
