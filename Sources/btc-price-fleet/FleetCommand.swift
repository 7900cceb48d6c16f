import BTCPriceSocket
import CommandLine

enum FleetCommand {
    case publish(BrokerOptions, socket: String?, name: String, isForHomeAssistant: Bool)
    /// The publishers; all, if none is named.
    case follow(BrokerOptions, directory: String, publishers: [String])

    static let program = Program(
        Command(
            "btc-price-fleet", "Carries the price that btc-priced keeps to other machines, over an MQTT broker.",
            details: """
                Examples:
                  btc-price-fleet publish --broker mqtts://broker.example --name alpha
                  btc-price-fleet follow --broker mqtts://broker.example --publishers alpha,beta,gamma

                Exit status: 0 if it was stopped, 1 if it can't start, 64 for a wrong command line.
                """,
            commands: [
                Command(
                    "publish", "Publishes the price of this machine's daemon.",
                    options: BrokerOptions.all + [socket, name, homeAssistant]),
                Command(
                    "follow", "Serves the prices of publishers at sockets, as sources of this machine's daemon.",
                    options: BrokerOptions.all + [directory, publishers]),
            ]),
        version: "btc-price-fleet \(Product.fullVersion)")

    private static let socket = Option("--socket", value: "path", "The daemon's socket.", completion: .files)
    private static let name = Option("--name", value: "name", "The publisher's name, which is part of its topics.")
    private static let homeAssistant = Option(
        "--home-assistant", "Publish for Home Assistant, too: its discovery, and a value every 10 s.")
    private static let directory = Option(
        "--directory", value: "path",
        "The directory for the sockets, one for each publisher. Default: /run/btc-price-fleet.",
        completion: .directories)
    private static let publishers = Option(
        "--publishers", value: "names",
        "The publishers to follow, separated by commas. Default: all, at most \(Following.most).")

    init(_ line: ParsedLine) throws(UsageError) {
        let broker = try BrokerOptions(line)
        if line.command == "publish" {
            guard let name = try line.value(Self.name, Self.publisherName) else {
                throw UsageError("--name is missing")
            }
            self = .publish(
                broker, socket: line.text(Self.socket), name: name, isForHomeAssistant: line.has(Self.homeAssistant))
        } else {
            let names = try line.value(Self.publishers) { text throws(UsageError) -> [String] in
                var names: [String] = []
                for word in text.split(separator: ",", omittingEmptySubsequences: false) {
                    let name = try Self.publisherName(String(word))
                    if !names.contains(name) { names.append(name) }
                }
                return names
            }
            self = .follow(
                broker, directory: line.text(Self.directory) ?? "/run/btc-price-fleet", publishers: names ?? [])
        }
    }

    private static func publisherName(_ text: String) throws(UsageError) -> String {
        guard FleetTopic.isPublisherName(text) else {
            throw UsageError(
                "a name has lower-case letters, digits and hyphens, a letter first, and at most 32 of them")
        }
        return text
    }
}

struct BrokerOptions {
    let broker: BrokerAddress
    let caFile: String?
    let certificate: String?
    let key: String?
    let user: String?
    let passwordFile: String?

    static let all = [address, authorities, certificateFile, keyFile, userName, password]
    private static let address = Option(
        "--broker", value: "url", "The broker: mqtts://host:port, or mqtt:// without encryption.")
    private static let authorities = Option(
        "--ca-file", value: "file",
        "The certificate authorities for the broker, as PEM. Default: the credential broker-ca, or else the system's.",
        completion: .files)
    private static let certificateFile = Option(
        "--certificate", value: "file",
        "The client certificate, as PEM. Default: the credential broker-certificate.",
        completion: .files)
    private static let keyFile = Option(
        "--key", value: "file", "The key of the certificate, as PEM. Default: the credential broker-key.",
        completion: .files)
    private static let userName = Option("--user", value: "name", "The user, if the broker wants a password.")
    private static let password = Option(
        "--password-file", value: "file", "The file with the password. Default: the credential broker-password.",
        completion: .files)

    init(_ line: ParsedLine) throws(UsageError) {
        let address = try line.value(Self.address) { text throws(UsageError) in
            guard let address = BrokerAddress(text) else {
                throw UsageError("write mqtts://broker.example:8883")
            }
            return address
        }
        guard let address else { throw UsageError("--broker is missing") }
        broker = address
        caFile = line.text(Self.authorities)
        certificate = line.text(Self.certificateFile)
        key = line.text(Self.keyFile)
        user = line.text(Self.userName)
        passwordFile = line.text(Self.password)
        // Without effect, somebody would believe in an encryption or a password that is not there.
        if !broker.isEncrypted,
            let option = [Self.authorities, Self.certificateFile, Self.keyFile].first(where: line.has)
        {
            throw UsageError("\(option.name) has no effect with mqtt://: write mqtts://, or leave it out")
        }
        if passwordFile != nil, user == nil {
            throw UsageError("\(Self.password.name) has no effect without \(Self.userName.name): give both")
        }
    }
}
