import BTCPriceCore
import BTCPriceFeature
import Configuration
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import btc_price_alert

@Suite struct AlertFileTests {
    private let folder = TemporaryDirectory()
    private var path: String { "\(folder.path)/alerts.toml" }
    private var file: AlertFile { AlertFile(path: path, isRoots: false) }

    private func write(_ text: String) throws { try Data(text.utf8).write(to: URL(filePath: path)) }

    private func text() throws -> String { String(decoding: try Data(contentsOf: URL(filePath: path)), as: UTF8.self) }

    @Test(arguments: [
        ("below = 60000", "below $60,000.00"), (#"above = "€100k""#, "above €100,000.00"),
        (#"change = "5%"\#nwithin = "1h""#, "a change of 5 % within 60 min"),
        (#"change = 500\#nwithin = 600\#ncurrency = "CHF""#, "a change of CHF 500.00 within 10 min"),
        (#"when-stale = "5m""#, "no fresh price in USD for 5 min"), ("when-unsure = true", "an unsure price in USD"),
        (#"when-unsure = true\#nmax-uncertainty = "0.5%""#, "an unsure price in USD, or ± above 0.5 %"),
        (#"below = "60k"\#nfor = "5m"\#nconfirmed = true"#, "below $60,000.00, for 5 min, confirmed"),
    ])
    func `each condition is read`(table: String, condition: String) throws {
        try write("[alert.a]\n\(table)\n")
        let content = try file.content()
        #expect(content.mistakes.isEmpty)
        #expect(content.alerts.map(\.condition) == [condition])
    }

    @Test(arguments: [
        ("", "one condition"), ("below = 1\nabove = 2", "one condition"), (#"below = "soon""#, "positive number"),
        (#"change = "5%""#, "span of time"), ("below = 1\nwithin = 60", "belongs to change"),
        ("below = 60000\nconfirmed = true\nunconfirmed = true", "exclude"), ("below = 1\nfrom = 3", "unknown key"),
        (#"below = "€5"\#ncurrency = "USD""#, "in EUR"), (#"below = 5\#nrearm = "60%""#, "0 to 50"),
        (#"when-stale = "1s""#, "at least 10s"), ("when-stale = 60\nconfirmed = true", "below, above and change"),
        ("below = 1\nonce = 1", "true or false"), ("below = 1.5", "quotation marks"),
    ])
    func `a mistake names its line, and the other alerts are read`(table: String, problem: String) throws {
        try write("[alert.good]\nbelow = 1\n\n[alert.bad]\n\(table)\n")
        let content = try file.content()
        #expect(content.alerts.map(\.name) == ["good"])
        #expect(content.names == ["good", "bad"])
        let mistake = try #require(content.mistakes.first?.description)
        #expect(mistake.hasPrefix(path) && mistake.contains("alert.bad") && mistake.contains(problem), "\(mistake)")
    }

    @Test func `adding appends, removing cuts, and every other byte stays`() throws {
        let first =
            "# mine\r\n[alert.a] # first\nbelow = 1\n\n# of b\n  [ alert . \"b\" ]\nabove = 2 # two\n# behind b\n"
        try write(first)
        try file.add("c", [("below", .text("$3")), ("once", .flag(true))])
        let added = first + "\n[alert.c]\nbelow = \"$3\"\nonce = true\n"
        #expect(try text() == added)
        #expect(try file.remove("b") == 2)
        #expect(
            try text()
                == "# mine\r\n[alert.a] # first\nbelow = 1\n\n# of b\n# behind b\n\n[alert.c]\nbelow = \"$3\"\nonce = true\n"
        )
        #expect(try file.remove("c") == 1)
        #expect(try text() == "# mine\r\n[alert.a] # first\nbelow = 1\n\n# of b\n# behind b\n")
        #expect(try file.remove("a") == 0)
        #expect(try text() == "# mine\r\n\n# of b\n# behind b\n")
    }

    @Test func `a table that has no header of its own is left to an editor`() throws {
        let text = "[alert]\na.below = 1\nb = { above = 2 }\n"
        try write(text)
        #expect(throws: SettingsError.self) { try file.remove("a") }
        #expect(throws: SettingsError.self) { try file.remove("c") }
        #expect(throws: SettingsError.self) { try file.add("a", [("below", .integer(1))]) }
        #expect(try self.text() == text)
    }

    @Test func `a line in a text that looks like a header is none`() throws {
        let text = "[alert.a]\nexec = [\"x\", '''\n[alert.b]\n''']\nbelow = 1\n\n[alert.c]\nbelow = 2\n"
        try write(text)
        #expect(throws: SettingsError.self) { try file.remove("a") }
        #expect(try self.text() == text)
        #expect(try file.remove("c") == 1)
    }

    @Test func `nothing is written through a link, and permissions stay`() throws {
        try write("[alert.a]\nbelow = 1\n")
        chmod(path, 0o640)
        try file.add("b", [("below", .integer(2))])
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o640)
        let link = AlertFile(path: "\(folder.path)/link.toml", isRoots: false)
        #expect(symlink(path, link.path) == 0)
        #expect(try link.content().names == ["a", "b"])
        #expect(throws: SettingsError.self) { try link.add("c", [("below", .integer(2))]) }
        #expect(throws: SettingsError.self) { try link.remove("a") }
    }
}
