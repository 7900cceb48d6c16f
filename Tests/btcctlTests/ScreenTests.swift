import BTCPriceFeature
import TestSupport
import Testing

@testable import btcctl

/// Drawing without a terminal. Tests/System/062-terminal.py and 063-top.py test a real one.
@Suite struct ScreenTests {
    private func lines(_ texts: String...) -> [StyledLine] { texts.map { StyledLine($0) } }

    @Test func `only what differs is sent`() {
        var screen = Screen()
        #expect(
            screen.draw(lines("68,000 up", "2 s old"), in: (80, 24))
                == "\r68,000 up\u{1B}[K\r\n2 s old\u{1B}[K\u{1B}[8G")
        #expect(screen.draw(lines("68,000 up", "2 s old"), in: (80, 24)) == "")
        #expect(screen.draw(lines("68,000 up", "3 s old"), in: (80, 24)) == "\r3\u{1B}[8G")
        #expect(screen.draw(lines("68,010 up", "4 s old"), in: (80, 24)) == "\u{1B}[1A\u{1B}[5G1\u{1B}[1B\r4\u{1B}[8G")
        #expect(screen.draw(lines("68,010 up"), in: (80, 24)) == "\u{1B}[1A\u{1B}[10G\u{1B}[J")
        screen.forget()
        #expect(screen.draw(lines("68,010 up"), in: (80, 24)) == "\r68,010 up\u{1B}[K\u{1B}[10G", "others have written")
    }

    @Test func `a cell is drawn again if its colour differs`() {
        var screen = Screen()
        let price = { (style: StyledLine.Style) in [StyledLine([.init(text: "at "), .init(text: "68", style: style)])] }
        _ = screen.draw(price(.good), in: (80, 24), isColored: true)
        #expect(screen.draw(price(.bad), in: (80, 24), isColored: true) == "\u{1B}[4G\u{1B}[31m68\u{1B}[m\u{1B}[6G")
        var plain = Screen()
        _ = plain.draw(price(.good), in: (80, 24))
        #expect(plain.draw(price(.bad), in: (80, 24)) == "")
    }

    @Test func `lines are cut, and what would scroll is left out`() {
        var screen = Screen()
        let cut = Output.isUnicode ? "0123…" : "01..."
        #expect(screen.draw(lines("0123456789"), in: (6, 24)) == "\r\(cut)\u{1B}[K\u{1B}[6G")
        #expect(screen.draw(lines("1", "2", "3"), in: (6, 2)).contains("3") == false)
    }

    @Test func `in a narrower terminal a screen also erases the rows of wrapped lines`() {
        var screen = Screen()
        _ = screen.draw(lines("0123456789", "", "0123456"), in: (80, 24))
        #expect(
            screen.draw(lines("x"), in: (5, 24)) == "\r\u{1B}[4A\u{1B}[Jx\u{1B}[K\u{1B}[2G", "two rows, one and two")
    }

    @Test func `what a terminal would draw in two columns, join or obey takes one column`() {
        var screen = Screen(.whole)
        var terminal = PaperTerminal(width: 20, height: 1)
        terminal.show(screen.draw(lines("a\u{1B}[2J日e\u{301}\u{9B}\u{202E}👍\nb"), in: (20, 1)))
        #expect(terminal.texts == ["a?[2J?e?????b"])
        #expect(terminal.mistakes.isEmpty)
    }

    @Test func `any course of pictures and sizes leaves the last picture`() {
        var random = SeededGenerator.announced()
        let alphabet = Array(" aZ09.,$€±…▲⣿█─日\u{1B}\u{7}\u{301}")
        for extent in [Screen.Extent.lines, .whole] {
            for _ in 0..<150 {
                var most = (
                    width: Int.random(in: 1...90, using: &random), height: Int.random(in: 1...30, using: &random)
                )
                var size = most
                let start = extent == .whole ? 0 : Int.random(in: 0..<size.height, using: &random)
                var (screen, terminal) = (
                    Screen(extent), PaperTerminal(width: size.width, height: size.height, row: start)
                )
                var drawn: [StyledLine] = []
                for _ in 0..<12 {
                    if extent == .whole, Int.random(in: 0..<4, using: &random) == 0 {
                        size = (Int.random(in: 1...90, using: &random), Int.random(in: 1...30, using: &random))
                        // A terminal may keep, wrap or cut what was there, and may have the same size again.
                        if size == most { screen.forget() }
                        most = size
                        terminal = PaperTerminal(width: size.width, height: size.height, filled: "#")
                    }
                    // A part of the lines stays.
                    let count = Int.random(in: 1...max(1, size.height), using: &random)
                    drawn = (0..<count).map { index in
                        if index < drawn.count, Bool.random(using: &random) { return drawn[index] }
                        let length = Int.random(in: 0...100, using: &random)
                        let text = String((0..<length).map { _ in alphabet.randomElement(using: &random) ?? " " })
                        let style: StyledLine.Style = [.plain, .good, .strong].randomElement(using: &random) ?? .plain
                        return StyledLine([.init(text: text), .init(text: "end", style: style)])
                    }
                    terminal.show(screen.draw(drawn, in: size, isColored: true))
                    var fresh = Screen(.whole)
                    var expected = PaperTerminal(width: size.width, height: size.height)
                    expected.show(fresh.draw(drawn, in: size, isColored: true))
                    let first = extent == .whole ? 0 : terminal.row - (drawn.count - 1)
                    #expect(
                        Array(terminal.texts[first...].prefix(drawn.count)) == Array(expected.texts.prefix(drawn.count))
                    )
                    #expect(terminal.texts.dropFirst(first + drawn.count).joined() == "", "nothing below")
                    #expect(terminal.mistakes.isEmpty, "\(terminal.mistakes)")
                    if extent == .whole { #expect(terminal.scrolled == 0) }
                }
            }
        }
    }

    @Test func `keys are read from what terminals send, whole or in pieces`() {
        let sequences: [(String, [Key])] = [
            ("q1?", [.character("q"), .character("1"), .character("?")]), ("\t", [.tab]), ("\u{1B}[Z", [.backTab]),
            ("\u{1B}[A\u{1B}[B\u{1B}[C\u{1B}[D", [.up, .down, .right, .left]),
            ("\u{1B}OA\u{1B}OB\u{1B}OC\u{1B}OD", [.up, .down, .right, .left]),
            (
                "\u{1B}[5~\u{1B}[6~\u{1B}[1~\u{1B}[4~\u{1B}[H\u{1B}[F\u{1B}OH",
                [.pageUp, .pageDown, .home, .end, .home, .end, .home]
            ),
            ("\u{1B}[1;5C", [.right]), ("\u{C}", [.redraw]), ("\u{1B}[?2026;2$y", [.mode(2026, state: 2)]),
            ("\u{1B}OP\u{1B}[11~\u{1B}x", [.other, .other, .other]), ("\u{1B}\u{1B}[A", [.escape, .up]),
            ("\u{1}", [.other]),
            ("\u{1B}[99999999999999999999~q", [.other, .character("q")]), ("é", [.other, .other]),
        ]
        for (text, expected) in sequences {
            var whole = KeyReader()
            #expect(whole.keys(in: Array(text.utf8)) == expected)
            var pieces = KeyReader()
            #expect(text.utf8.flatMap { pieces.keys(in: [$0]) } == expected, "\(text.utf8.map { $0 })")
        }
        var alone = KeyReader()
        #expect(alone.keys(in: [0x1B]) == [])
        #expect(alone.escapeIfAlone() == .escape)
        #expect(alone.escapeIfAlone() == nil)
        var endless = KeyReader()
        #expect(endless.keys(in: Array("\u{1B}[".utf8) + Array(repeating: UInt8(ascii: "1"), count: 100)) == [])
        #expect(endless.keys(in: [UInt8(ascii: "q")]) == [.character("q")], "an endless sequence is forgotten")
    }
}
