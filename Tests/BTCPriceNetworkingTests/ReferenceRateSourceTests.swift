import BTCPriceCore
import Configuration
import TestSupport
import Testing

@testable import BTCPriceNetworking

@Suite struct ReferenceRateSourceTests {
    /// Friday, 2022-10-07.
    private static let present = Timestamp(milliseconds: 1_665_144_000_000)

    private func table(_ body: String, of name: String = "ecb", status: Int = 200) -> String {
        guard let source = ReferenceRateSource.all.first(where: { $0.name == name }) else { return "no source" }
        do throws(PriceLoadingError) {
            let table = try ReferenceRateSource.table(
                HTTPResponse(status: status, body: Array(body.utf8)), source.description,
                at: Self.present)
            let rates = table.rates.sorted { $0.key.rawValue < $1.key.rawValue }
            return rates.map { "\($0.key) \($0.value.value)" }.joined(separator: ", ")
                + " of \(rates.first?.value.date.utc.date ?? "")"
        } catch {
            return error.description
        }
    }

    private func ecb(_ rows: String, time: String = "2022-10-03") -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01">
        <!-- <Cube currency='ZZZ' rate='1'/> -->
        <Cube><Cube time='\(time)'>\(rows)</Cube></Cube></gesmes:Envelope>
        """
    }

    @Test func `the sources that are built in are described without an error`() {
        #expect(ReferenceRateSource.all.map(\.name) == ["ecb", "frankfurter"])
    }

    @Test func `the ECB's file is read, whatever the quotes and the spaces`() {
        let rows = "<Cube currency='USD' rate='0.9764'/> <Cube  rate = \"24.527\"\n currency=\"CZK\" />"
        #expect(table(ecb(rows)) == "CZK 24.527, USD 0.9764 of 2022-10-03")
    }

    @Test(.enabled(if: Shared.isPresent, "\(Shared.absence)"))
    func `the saved file is read`() throws {
        let xml = try String(decoding: Shared.bytes("described/fx_ecb_daily.xml"), as: UTF8.self)
        #expect(table(xml).hasPrefix("CZK 24.527, DKK 7.4366, HUF 424.86, INR 79.898, KRW 1408.25"))
        #expect(table(xml).hasSuffix("of 2022-10-03"))
    }

    @Test func `Frankfurter's rows are read`() {
        let body = """
            [{"date":"2022-10-03","base":"EUR","quote":"EUR","rate":1.0},
            {"date":"2022-10-03","base":"EUR","quote":"AED","rate":3.5860},
            {"date":"2022-10-03","base":"USD","quote":"CZK","rate":24.5}]
            """
        #expect(table(body, of: "frankfurter") == "AED 3.586 of 2022-10-03")
    }

    @Test func `the rates of past days are requested for the wanted currencies, and what is not one is left out`()
        throws
    {
        let source = try #require(ReferenceRateSource.all.last)
        let czk = try #require(Currency(rawValue: "CZK"))
        #expect(
            source.target(of: .init(currencies: [czk, .usd], days: 18_993...19_358))
                == "/v2/rates?base=EUR&from=2022-01-01&to=2023-01-01&quotes=CZK,USD")
        let body = """
            [{"date":"2022-10-03","base":"EUR","quote":"CZK","rate":24.5},{"date":"2022-10-04","base":"EUR","quote":"CZK","rate":24.6},
            {"date":"2022-10-04","base":"EUR","quote":"USD","rate":0.98},{"date":"2022-10-04","base":"EUR","quote":"PLN","rate":4.8},
            {"date":"2022-10-05","base":"EUR","quote":"CZK","rate":24.7},{"date":"2022-10-05","base":"EUR","quote":"CZK","rate":25.7},
            {"date":"2022-10-06","base":"USD","quote":"CZK","rate":24.6},{"date":"2022-10-09","base":"EUR","quote":"CZK","rate":24.6},
            {"date":7,"base":"EUR","quote":"CZK","rate":24.6},{"base":"EUR","quote":"CZK","rate":24.6},null,
            {"date":"2022-10-07","base":"EUR","quote":"CZK","rate":"none"}]
            """
        let rates = try source.rates(
            in: HTTPResponse(status: 200, body: Array(body.utf8)), of: [czk, .usd], at: Self.present)
        #expect(
            Set(rates.map { "\($0.currency) \($0.day) \($0.value)" }) == [
                "CZK 19268 24.5", "CZK 19269 24.6", "USD 19269 0.98",
            ])
        for (status, body) in [(200, "{}"), (200, "{\"message\":\"not found\"}"), (404, "[]"), (200, "<html>")] {
            #expect(throws: PriceLoadingError.self, "\(body)") {
                try source.rates(in: HTTPResponse(status: status, body: Array(body.utf8)), of: [czk], at: Self.present)
            }
        }
        #expect(ReferenceRateSource.all[0].description.history == nil)
    }

    @Test func `a row that is not valid costs its currency only`() {
        let rows = """
            <Cube currency='CZK' rate='24.527'/><Cube currency='HUF' rate='N/A'/><Cube currency='PLN'/>
            <Cube currency='RON' rate='5.1' name='a &amp; b'/><Cube currency='SEK' rate/><Cube/><Cube currency='USD' rate='0.9764'/>
            """
        #expect(table(ecb(rows)) == "CZK 24.527, USD 0.9764 of 2022-10-03")
        let body = """
            [{"date":"2022-10-03","base":"EUR","quote":"AED","rate":3.5860},7,null,{"quote":[]},
            {"date":"2022-10-09","base":"EUR","quote":"CZK","rate":24.5},{"base":"EUR","quote":"HUF","rate":390},
            {"date":"2022-10-03","base":"EUR","quote":"PLN","rate":"none"},{"date":7,"base":"EUR","quote":"RON","rate":5.1},
            {"date":"2022-10-03","base":"EUR","quote":"USD","rate":0.97},{"date":"2022-10-03","base":"EUR","quote":"USD","rate":1.97}]
            """
        #expect(table(body, of: "frankfurter") == "AED 3.586 of 2022-10-03")
    }

    @Test(arguments: [
        ("<html><body>Moved</body></html>", "a page of HTML"), ("", "an empty body"),
        ("<!DOCTYPE x [<!ENTITY a '1'>]><Cube time='2022-10-03'/>", "a page of HTML"),
        ("<Cube time='2022-10-03'><Cube currency='USD' rate='&amp;'/></Cube>", "no row has"),
        ("<Cube time='2022-10-03'><Cube currency='USD' rate='0,97'/></Cube>", "which is not a price"),
        ("<Cube time='2022-10-03'><Cube currency='USD' rate='0'/></Cube>", "which is not a price"),
        (
            "<Cube time='2022-10-03'><Cube currency='USD' rate='1'/><Cube currency='USD' rate='2'/></Cube>",
            "2 rows have USD"
        ),
        ("<Cube time='tomorrow'><Cube currency='USD' rate='0.97'/></Cube>", "which is not a time"),
        ("<Cube time='2022-10-09'><Cube currency='USD' rate='0.97'/></Cube>", "one in the future"),
        ("<Cube><Cube currency='USD' rate='0.97'/></Cube>", "there is no"),
        ("<Cube time='2022-10-03'", "a page of HTML"),
    ])
    func `what is not the file gives no rate, and the reason`(body: String, reason: String) {
        #expect(table(body).contains(reason), "\(table(body))")
    }

    @Test func `a source that has moved is reported, and not followed`() {
        #expect(table("", status: 301) == "not available: HTTP 301: it redirects, which is not followed")
    }

    @Test(arguments: [
        ("url = \"https://a.example/x\"\nprice = \"/r/{QUOTE}\"\ntime = \"/d\"\ntime-is = \"book\"", "it has no base"),
        ("url = \"https://a.example/x\"\nbase = \"EUR\"\nprice = \"/r/{QUOTE}\"", "must be the place of the day"),
        (
            "url = \"https://a.example/x\"\nbase = \"euro\"\nprice = \"/r/{QUOTE}\"\ntime = \"/d\"\ntime-is = \"book\"",
            "is not a currency"
        ),
        (
            "url = \"https://a.example/x\"\nbase = \"EUR\"\nprice = \"/r\"\ntime = \"/d\"\ntime-is = \"book\"",
            "would get the same price"
        ),
        (
            "url = \"http://a.example/x\"\nbase = \"EUR\"\nprice = \"/r/{QUOTE}\"\ntime = \"/d\"\ntime-is = \"book\"",
            "must begin with https://"
        ),
        (
            "url = \"https://a.example/x\"\nbase = \"EUR\"\nprice = \"/r/{QUOTE}\"\ntime = \"/d\"\ntime-is = \"book\"\nhistory = \"/{FROM}..{TO}\"",
            "needs a row for each rate"
        ),
        (
            "url = \"https://a.example/x\"\nbase = \"EUR\"\nprice = \"/r/{QUOTE}\"\ntime = \"/d\"\ntime-is = \"book\"\nhistory = \"/{FROM}\"",
            "with {FROM} and {TO}"
        ),
        (
            "url = \"https://a.example/x\"\nbase = \"EUR\"\nprice = \"/r/{QUOTE}\"\ntime = \"/d\"\ntime-is = \"book\"\nhistory = \"/{FROM}{TO}{names}\"",
            "is not a placeholder here"
        ),
    ])
    func `a description with a mistake is refused with what to do`(text: String, problem: String) throws {
        let file = try ConfigurationFile(text: "[reference-rate.mine]\n\(text)\n", path: "test.toml")
        let (name, table) = file.tables(in: "reference-rate")[0]
        let error = #expect(throws: SettingsError.self) { try ReferenceRateSource(name, table) }
        #expect(error?.description.contains(problem) == true, "\(error?.description ?? "")")
    }
}
