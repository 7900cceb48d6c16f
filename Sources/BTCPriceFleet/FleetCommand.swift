import ArgumentParser
import BTCPriceAPI

/// The command line of the satellite.
struct FleetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "btc-price-fleet",
        abstract: "Carries the price that btc-priced keeps to other machines, over an MQTT broker.",
        discussion: """
            Examples:
              btc-price-fleet publish --broker mqtts://broker.example --name alpha
              btc-price-fleet follow --broker mqtts://broker.example --publishers alpha,beta,gamma

            Exit status: 0 if it was stopped, 1 if it can't start, 64 for a wrong command line.
            """,
        version: "btc-price-fleet \(Product.version)", subcommands: [PublishCommand.self, FollowCommand.self])

    /// Parses the command line. In an error, what it quotes of the arguments is printable.
    static func parseAsRoot() throws -> any ParsableCommand {
        try (try? parseAsRoot(nil)) ?? parseAsRoot(CommandLine.arguments.dropFirst().map(\.printable))
    }
}

/// The address of the broker, and the credentials for it.
struct BrokerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("The broker: mqtts://host:port, or mqtt:// without encryption.", valueName: "url"),
        transform: { text in
            guard let address = BrokerAddress(text) else {
                throw ValidationError("'\(text)' is not a valid address of a broker: mqtts://broker.example:8883")
            }
            return address
        })
    var broker: BrokerAddress

    @Option(
        help: ArgumentHelp(
            "The authorities that may vouch for the broker, as PEM. (default: the credential broker-ca, otherwise the system's)",
            valueName: "file"),
        completion: .file())
    var caFile: String?

    @Option(
        help: ArgumentHelp(
            "The certificate to show to the broker, as PEM. (default: the credential broker-certificate)",
            valueName: "file"), completion: .file())
    var certificate: String?

    @Option(
        help: ArgumentHelp(
            "The key of the certificate, as PEM. (default: the credential broker-key)", valueName: "file"),
        completion: .file())
    var key: String?

    @Option(help: ArgumentHelp("The user, if the broker wants a password.", valueName: "name"))
    var user: String?

    @Option(
        help: ArgumentHelp("The user's password. (default: the credential broker-password)", valueName: "file"),
        completion: .file())
    var passwordFile: String?
}

struct PublishCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish", abstract: "Publishes the price of this machine's daemon.")

    @OptionGroup var broker: BrokerOptions

    @Option(help: ArgumentHelp("The daemon's socket.", valueName: "path"), completion: .file())
    var socket: String?

    @Option(help: ArgumentHelp("The publisher's name, which is part of its topics.", valueName: "name"))
    var name: String

    @Flag(help: "Publish for Home Assistant, too: its discovery, and a value every 10 s.")
    var homeAssistant = false

    func validate() throws {
        guard FleetTopic.isPublisherName(name) else { throw ValidationError(Self.nameRule(name)) }
    }

    static func nameRule(_ name: String) -> String {
        "'\(name)' is not a valid name of a publisher: lower-case letters, digits and hyphens, a letter first, at most 32 of them"
    }
}

struct FollowCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "follow",
        abstract: "Serves the prices of publishers at sockets, as sources of this machine's daemon.")

    @OptionGroup var broker: BrokerOptions

    @Option(
        help: ArgumentHelp("Where the sockets are made, one for each publisher.", valueName: "path"),
        completion: .directory)
    var directory = "/run/btc-price-fleet"

    @Option(
        help: ArgumentHelp(
            "The publishers to follow, separated by commas. (default: all, \(Following.most) at most)",
            valueName: "names"),
        transform: { text in
            let names = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
            for name in names where !FleetTopic.isPublisherName(name) {
                throw ValidationError(PublishCommand.nameRule(name))
            }
            return names.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
        })
    var publishers: [String] = []
}
