import BTCPriceCore
import BTCPriceFeature
import Testing

@testable import btcctl

@Suite struct PaymentTests {
    private func table(_ text: String) throws -> PaymentTable { try PaymentTable(Array(text.utf8)) }

    private func columns(
        _ text: String, _ options: PaymentColumns.Options = .init()
    ) throws -> (columns: PaymentColumns, cells: [[String]]) {
        let table = try table(text)
        return (try PaymentColumns(of: table, options), table.rows.compactMap(\.cells))
    }

    private func mistake(_ text: String, _ options: PaymentColumns.Options = .init()) -> String? {
        do { _ = try columns(text, options) } catch { return (error as? PaymentTable.Mistake)?.message }
        return nil
    }

    private let now = Timestamp(milliseconds: 1_795_400_000_000)

    @Test(arguments: [
        ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]), ("a;b\r\n1,5;2", [["a", "b"], ["1,5", "2"]]),
        ("\u{FEFF}a\tb\n\n;\t,\n", [["a", "b"], [""], [";", ","]]),
        ("\"a \"\"x\"\"\",\"b\nc\"\r\n,\n", [["a \"x\"", "b\nc"], ["", ""]]), ("a\"b,c\n", [["a\"b", "c"]]),
        ("\"a;b;c\",d\n", [["a;b;c", "d"]]), ("a\rb,c\n", [["a\rb", "c"]]), ("", []),
    ])
    func `a table is read as other programs write it, and every byte is kept`(text: String, cells: [[String]]) throws {
        let table = try table(text)
        #expect(table.rows.map(\.cells) == cells)
        #expect(Array(table.start) + table.rows.flatMap { $0.bytes + $0.end } == Array(text.utf8))
    }

    @Test func `wrong quotation marks cost their line only`() throws {
        let table = try table("a,b\n\"x,1\ny,2\r\n\"z\"z,3\r\n\"w\",4\n")
        // The mark of the second line ends in the fourth, after which there is text.
        #expect(table.rows.map(\.cells) == [["a", "b"], nil, ["y", "2"], nil, ["w", "4"]])
        #expect(table.rows.map(\.line) == [1, 2, 3, 4, 5])
        #expect(table.rows.map { $0.end.count } == [1, 1, 2, 2, 1])
        for bytes: [UInt8] in [[0xFF, 0xFE, 0x61, 0], [0x61, 0]] {
            #expect(throws: PaymentTable.Mistake.self) { try PaymentTable(bytes) }
        }
    }

    @Test func `new cells are quoted if they must be, and short rows filled`() throws {
        let table = try table("a,b,c\r\nx\n1,2,3")
        let text = { (index: Int, cells: [String]) in
            String(decoding: table.extended(table.rows[index], cells, width: 3), as: UTF8.self)
        }
        #expect(text(0, ["price", "doubt"]) == "a,b,c,price,doubt\r\n")
        #expect(text(1, ["1", "38 of 60, in \"doubt\""]) == "x,,,1,\"38 of 60, in \"\"doubt\"\"\"\n")
        #expect(text(2, ["", ""]) == "1,2,3,,")
    }

    @Test(arguments: [
        ("id,Date (UTC),Amount BTC,fee_btc\n7,2026-08-25 14:30,1,2\n", 1, 2), ("1795000000,0.05btc\n", 0, 1),
        ("amount_sat;settled_at\n;\n1500000000;2026-08-25T14:30Z\n", 1, 0), ("when,what\n2026-08-25,x\n", 0, nil),
        ("date,amount_sat,rate (BTC/USD)\n2026-08-25,0.05,68000\n", 0, 1),
        ("08/25/2026,1 btc\n2026-08-25,2 btc\n", 0, 1),
        ("date;fee2;amount_sat\n2026-08-25;5;1.500\n", 0, 2),
        ("Date (UTC),Amount BTC,24h price\n2026-08-25 14:30,1,2\n", 0, 1),
        ("date,total_sats\n2026-08-25,5\n", 0, 1), ("date,Amount (USD)\n2026-08-25,250 usd\n", 0, 1),
        ("date,BTC/USD\n2026-08-25,5\n", 0, nil),
        ("id,when,amount_sat\n1700000001,2026-08-25,150000000\n", 1, 2), ("date,amount btc\n", 0, nil),
        ("date,usd\n2026-08-25,5\n", 0, nil),
        ("sep=;\ndate;btc\n2026-08-25;5\n", 0, 1),
        ("time\tamount_msat\tamount_usd\n1795000000123\t5\t0.01\n", 0, 1), ("id,time\n1795000000,1795000000\n", 1, nil),
    ])
    func `the columns are found by what is in them and by their names`(text: String, time: Int, amount: Int?) throws {
        let found = try columns(text).columns
        #expect((found.time, found.amount) == (time, amount))
        #expect(found.isUTC == text.contains("UTC"))
    }

    @Test func `what can't be told is asked for`() throws {
        let sat = PaymentUnit(name: "sat")
        #expect(mistake("") == "it has no rows")
        #expect(
            mistake("invoice,date,amount_btc\n1700000001,25.08.2026,0.05\n")
                == "the times of column 2 (date) are not such as 2026-08-25T14:30:05Z")
        #expect(
            mistake("date,amount_usd\n2026-08-25,5\n")
                == "the amounts of column 2 (amount_usd) may be money: add --unit, or --amount-column none")
        #expect(try columns("date,amount\n", .init(unit: sat)).columns.header?.count == 2)
        #expect(
            mistake("time\n2026-08-25\n", .init(time: "-9223372036854775808"))?.hasPrefix("it has no column") == true)
        #expect(mistake("a,b\n1,2\n") == "it has no column of times such as 2026-08-25T14:30:05Z or 1795400000")
        let two = "created_at,settled_at,amount\n2026-08-25,2026-08-26,5\n"
        #expect(
            mistake(two) == "more than one column may have the times: say --time-column created_at or settled_at")
        #expect(
            mistake(two, .init(time: "Settled_At"))
                == "the amounts of column 3 (amount) have no unit: add --unit btc, sat, msat or a currency")
        #expect(mistake(two, .init(time: "4")) == "it has no column '4', only created_at, settled_at, amount")
        #expect(try columns(two, .init(time: "2", unit: sat)).columns.amount == 2)
        #expect(try columns(two, .init(time: "2", amount: "none")).columns.amount == nil)
        let ids = "10045,2026-08-25,500\n"
        #expect(try columns(ids).columns.amount == nil)
        #expect(
            mistake(ids, .init(unit: sat)) == "more than one column may have the amounts: say --amount-column 1 or 3")
        #expect(try columns(ids, .init(amount: "3", unit: sat)).columns.amount == 2)
        #expect(
            mistake("date,amount,fee_btc\n2026-08-25,5,1\n")
                == "the amounts of column 2 (amount) have no unit: add --unit btc, sat, msat or a currency")
        #expect(
            mistake("date,amount,sent_btc\n2026-08-25,5,1\n")
                == "more than one column may have the amounts: say --amount-column amount or sent_btc")
        #expect(
            mistake("date,amount_btc\n2026-08-25,5\n", .init(unit: sat))
                == "the name of column 2 (amount_btc) says another unit than --unit")
        #expect(
            try columns("date,amount,BTC price\n2026-08-25,5,6\n", .init(unit: PaymentUnit(name: "usd"))).columns.amount
                == 1)
        #expect(mistake("2026-08-25,x\n", .init(unit: sat)) == "it has no column of amounts")
        #expect(
            mistake("time,in_btc,out_btc\n2026-08-25,1,2\n")
                == "more than one column may have the amounts: say --amount-column in_btc or out_btc")
    }

    @Test(arguments: [
        ("2026-08-25T14:30:05.123Z", 1_787_668_205), ("2026-08-25 14:30:05 UTC", 1_787_668_205),
        ("2026-08-25 16:30:05+02", 1_787_668_205), (" 2026-08-25 16:30:05 +0200 ", 1_787_668_205),
        ("2026-08-25 14:30:05", 1_787_668_205), ("1787668205", 1_787_668_205), ("1787668205123", 1_787_668_205),
        ("1787668205.5", 1_787_668_205), ("2026-08-25", 1_787_616_000),
    ])
    func `a time is read as programs write it`(text: String, second: Int64) throws {
        let (found, cells) = try columns("\(text),1 btc\n", .init(time: "1", isUTC: true))
        let payment = try found.payment(cells[0], now: now)
        #expect(payment.time.wholeSeconds == second)
        #expect(payment.isDay == (text.count == 10 && text.contains("-")))
    }

    @Test(arguments: [
        ("7d", "not a date"), ("14:30", "not a date"), ("25.08.2026", "not a date"), ("08/25/2026 14:30", "not a date"),
        ("", "no time"), ("178766820512345", "neither Unix"), ("2027-08-25", "in the future"),
        ("2026-02-30", "no day"), ("2026-08-25 25:00", "not a date"), ("2026-08-25 14:30 CET", "not a date"),
    ])
    func `what is no time of a payment costs its row`(text: String, reason: String) throws {
        let (found, cells) = try columns("time,btc\n2026-08-25,1\n\(text),1\n")
        do {
            _ = try found.payment(cells[2], now: now)
            Issue.record("\(text) is accepted")
        } catch {
            #expect(error.message.contains(reason), "\(error.message)")
        }
    }

    @Test(arguments: [
        ("0.05", "btc", ".", "0.05", false), ("-0.05", "btc", ".", "0.05", true),
        ("+5e-05", "btc", ".", "0.00005", false),
        ("0,05", "btc", ",", "0.05", false), ("1,500", "btc", ",", "1.5", false),
        ("−1500 sat", "btc", ".", "1500", true),
        ("1500", "msat", ".", "1.5", false), ("1500msat", "btc", ".", "1.5", false), ("2 btc", "msat", ".", "2", false),
        ("\"1,234.5\"", "usd", ".", "1234.5", false), ("1.234,5", "usd", ",", "1234.5", false),
    ])
    func `an amount is read with its sign, its unit and the mark of its decimals`(
        text: String, unit: String, mark: Character, value: String, isNegative: Bool
    ) throws {
        let (found, cells) = try columns(
            "2026-08-25\t\(text)\n", .init(amount: "2", unit: PaymentUnit(name: unit), decimalMark: mark))
        let payment = try found.payment(cells[0], now: now)
        #expect((payment.amount?.value.description, payment.isNegative) == (value, isNegative))
    }

    @Test(arguments: [
        ("0,05", "."), ("1.500", ","), ("70.000 sat", "."), ("1--2", "."), ("(5)", "."), ("5 xyz", "."), ("1e999", "."),
    ])
    func `an amount that may mean another one costs its row`(text: String, mark: Character) throws {
        let (found, cells) = try columns(
            "2026-08-25\t1\n2026-08-25\t\(text)\n",
            .init(amount: "2", unit: PaymentUnit(name: "btc"), decimalMark: mark))
        #expect(throws: PaymentTable.Mistake.self) { try found.payment(cells[1], now: now) }
        #expect(try found.payment(["2026-08-25", " "], now: now).amount == nil)
    }
}
