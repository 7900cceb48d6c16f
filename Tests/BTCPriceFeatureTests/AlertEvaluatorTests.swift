import BTCPriceCore
import Glibc
import TestSupport
import Testing

@testable import BTCPriceFeature

@Suite struct AlertEvaluatorTests {
    /// The times of the firings, in seconds, for prices a second apart; `nil` is a second without a fresh price.
    private func firings(
        _ rule: AlertRule, _ prices: [Price?], from state: AlertState = AlertState(),
        confirmation: (Int) -> BTCPriceCore.Confirmation = { _ in .confirmed }
    ) -> [Int] {
        var evaluator = AlertEvaluator(rule, state)
        return prices.indices.filter { second in
            var reading = AlertReading(at: Int64(second) * 1000, prices[second])
            reading.confirmation = confirmation(second)
            return evaluator.see(reading) != nil
        }
    }

    private func rule(_ condition: AlertRule.Condition, _ change: (inout AlertRule) -> Void = { _ in }) -> AlertRule {
        var rule = AlertRule(condition)
        change(&rule)
        return rule
    }

    @Test func `a crossing is told once, and again after the price was back`() {
        #expect(firings(rule(.above(100)), [99, 100, 101, 102, 99, 101]) == [2, 5])
        #expect(firings(rule(.below(100)), [101, 100, 99, 98, 100, 99]) == [2, 5])
        #expect(firings(rule(.above(100)) { $0.isOnce = true }, [99, 101, 99, 101]) == [1])
    }

    @Test func `an alert that begins beyond tells nothing, and one that was inside before does`() {
        #expect(firings(rule(.above(100)), [101, 102, 99, 101]) == [3])
        #expect(firings(rule(.above(100)), [101], from: AlertState(position: .inside)) == [0])
    }

    @Test func `a flapping price is told again only after it was far enough back`() {
        let flapping: [Price?] = [99, 101, 100, 101, 99, 101, 98, 101]
        #expect(firings(rule(.above(100)), flapping) == [1, 3, 5, 7])
        #expect(firings(rule(.above(100)) { $0.rearm = 2 }, flapping) == [1, 7])
    }

    @Test func `what comes within the pause is counted`() {
        var evaluator = AlertEvaluator(rule(.above(100)) { $0.pause = .seconds(10) })
        var told: [AlertFiring] = []
        for second in 0..<200 {
            if let firing = evaluator.see(AlertReading(at: Int64(second) * 500, second % 2 == 0 ? 99 : 101)) {
                told.append(firing)
            }
        }
        #expect(told.count == 10 && told.map(\.heldBack) == [0] + Array(repeating: 9, count: 9))
    }

    @Test func `a condition must hold for its time, and a second without a price changes nothing`() {
        let held = rule(.above(100)) { $0.hold = .seconds(3) }
        #expect(firings(held, [99, 101, 101, 101, 101]) == [4])
        #expect(firings(held, [99, 101, 101, 99, 101, 101, 101, 101]) == [7])
        #expect(firings(held, [99, 101, nil, nil, 101]) == [4])
        #expect(firings(rule(.above(100)), [99, nil, 101, nil, nil, 102]) == [2])
    }

    @Test func `an unconfirmed crossing is told if it lasts a minute`() {
        let prices: [Price?] = [99] + Array(repeating: 101, count: 70)
        #expect(firings(rule(.above(100)), prices) { $0 < 1 ? .confirmed : .unconfirmed } == [61])
        #expect(firings(rule(.above(100)), prices) { $0 < 30 && $0 > 0 ? .unconfirmed : .confirmed } == [30])
        #expect(firings(rule(.above(100)) { $0.trust = .any }, prices) { _ in .unconfirmed } == [1])
        #expect(firings(rule(.above(100)) { $0.trust = .confirmed }, prices) { $0 < 40 ? .single : .confirmed } == [])
        let back: [Price?] = [99, 101, 99, 101]
        #expect(firings(rule(.above(100)), back) { $0 == 2 ? .unconfirmed : .confirmed } == [1], "an unsure return")
    }

    @Test func `an alert begins at a price that is sure, or has lasted a minute`() {
        let below = rule(.below(100))
        #expect(firings(below, [95, 95, 103, 99]) { $0 < 2 ? .unconfirmed : .confirmed } == [3])
        #expect(firings(below, [103, 99, 98]) { $0 < 1 ? .unconfirmed : .confirmed } == [])
        let long: [Price?] = Array(repeating: 95, count: 61) + [103, 99]
        #expect(firings(below, long) { $0 < 61 ? .unconfirmed : .confirmed } == [62])
    }

    @Test func `a change is measured from any price of the time before, and then from where it was told`() {
        let change = rule(.change(.percent(5), within: .seconds(60)))
        #expect(firings(change, [100, 104, 99, 104, 103]) == [3], "5 % from the lowest")
        #expect(firings(change, [100, 105, 106, 110, 111]) == [1, 4])
        #expect(firings(change, [100] + Array(repeating: 102, count: 59) + [105]) == [], "a minute later")
        let slow: [Price?] = (0..<200).map { Price($0 < 100 ? 100 : 110) }
        #expect(
            firings(change, slow) { _ in .unconfirmed } == [], "the base of a minute ago is gone when it has lasted")
        #expect(firings(rule(.change(.percent(5), within: .seconds(600))), slow) { _ in .unconfirmed } == [160])
        let told = rule(.change(.amount(5), within: nil))
        #expect(firings(told, [100, 104, 99, 105, 109, 110]) == [3, 5])
    }

    @Test func `a price that stays away, and one that is not sure`() {
        #expect(firings(rule(.stale(.seconds(3))), [100, nil, nil, nil, nil, 100, nil, nil, nil]) == [3, 8])
        var evaluator = AlertEvaluator(rule(.unsure(bound: 1)))
        var reading = AlertReading(at: 0, 100)
        let uncertainties: [Price?] = [Price(5, scale: 1), 1, Price(11, scale: 1), 2, nil, 1, nil]
        let told = uncertainties.map { uncertainty in
            reading.uncertainty = uncertainty
            return evaluator.see(reading) != nil
        }
        #expect(told == [false, false, true, false, false, false, true])
    }

    // MARK: - Against an obvious one

    /// A slow evaluator, by the words of the documentation alone: it looks back over all readings.
    private struct Obvious {
        enum Word { case nothing, neither, inside, beyond }

        let rule: AlertRule
        var readings: [AlertReading] = []
        var isBeyond: Bool?
        /// The reading at which it last became the one or the other, or the first that counted.
        var turned = 0
        var hasTurned = false
        var told: Int64?
        var heldBack = 0

        func isUnsure(_ reading: AlertReading) -> Bool {
            switch rule.condition {
            case .stale, .unsure: false
            default: rule.trust == .lasting && reading.confirmation == .unconfirmed
            }
        }

        /// Whether a change is measured from a price: it is sure, or only unconfirmed ones have come for a minute.
        func isBase(_ index: Int) -> Bool {
            if !isUnsure(readings[index]) { return true }
            let sure = readings[..<index].lastIndex { $0.price != nil && !isUnsure($0) }
            guard let first = readings[((sure ?? -1) + 1)...].first(where: { $0.price != nil }) else { return false }
            return readings[index].time - first.time >= 60_000
        }

        func word(_ index: Int) -> Word {
            let reading = readings[index]
            if case .stale(let longest) = rule.condition {
                if reading.price != nil { return .inside }
                let last = readings[...index].last { $0.price != nil } ?? readings[0]
                return .milliseconds(reading.time - last.time) >= longest ? .beyond : .neither
            }
            guard let price = reading.price else { return .nothing }
            if case .unsure(let bound) = rule.condition {
                if reading.confirmation == .unconfirmed || reading.isInDoubt { return .beyond }
                guard let bound else { return .inside }
                return reading.uncertainty.map { $0 > bound } == false ? .inside : .beyond
            }
            if rule.trust == .confirmed, reading.confirmation != .confirmed { return .nothing }
            switch rule.condition {
            case .above(let bound):
                if price > bound { return .beyond }
                return price * 100 <= bound * (100 - rule.rearm) ? .inside : .neither
            case .below(let bound):
                if price < bound { return .beyond }
                return price * 100 >= bound * (100 + rule.rearm) ? .inside : .neither
            case .change(let change, let within):
                return bases(index, within).contains { other in
                    guard let base = readings[other].price else { return false }
                    switch change {
                    case .amount(let amount): return (price - base).magnitude >= amount
                    case .percent(let share): return (price - base).magnitude * 100 >= base * share
                    }
                } ? .beyond : .inside
            default: return .nothing
            }
        }

        /// The readings from which a change is measured at another one.
        private func bases(_ index: Int, _ within: Duration?) -> [Int] {
            let counted = (turned..<index).filter { other in
                readings[other].price != nil && (other == turned && hasTurned || isBase(other))
                    && (rule.trust != .confirmed || readings[other].confirmation == .confirmed)
            }
            guard let within else { return Array(counted.prefix(1)) }
            let sixtieth = within.wholeMilliseconds / 60
            return counted.filter { readings[index].time / sixtieth - readings[$0].time / sixtieth < 60 }
        }

        /// The change at a reading.
        private func move(_ index: Int) -> PriceMove? {
            guard case .change(_, let within) = rule.condition, let price = readings[index].price else { return nil }
            let bases = bases(index, within).compactMap { readings[$0].price }
            let farthest = bases.map { ($0 - price).magnitude }.max()
            return bases.filter { ($0 - price).magnitude == farthest }.min().map { PriceMove(from: $0, to: price) }
        }

        mutating func see(_ reading: AlertReading) -> AlertFiring? {
            readings.append(reading)
            let index = readings.count - 1
            if rule.isOnce, told != nil { return nil }
            let word = word(index)
            if word == .nothing { return nil }
            guard let isBeyond else {
                let first = readings.indices.first { self.word($0) != .nothing } ?? index
                if isUnsure(reading), reading.time - readings[first].time < 60_000 { return nil }
                (self.isBeyond, turned) = (word == .beyond, index)
                return nil
            }
            guard word == (isBeyond ? .inside : .beyond) else { return nil }
            // Since when do they say so, one after the other?
            var since = index
            for other in (turned..<index).reversed() where other > turned {
                let before = self.word(other)
                if before == .nothing { continue }
                if before != word { break }
                since = other
            }
            let move = move(index)
            let lasted = Duration.milliseconds(reading.time - readings[since].time)
            if isUnsure(reading), lasted < .seconds(60) { return nil }
            if word == .beyond, lasted < rule.hold { return nil }
            (turned, hasTurned) = (index, true)
            self.isBeyond = word == .beyond
            guard word == .beyond else { return nil }
            if case .change = rule.condition { self.isBeyond = false }
            if let told, .milliseconds(reading.time - told) < rule.pause {
                heldBack += 1
                return nil
            }
            defer { (told, heldBack) = (reading.time, 0) }
            return AlertFiring(
                since: readings[since].time, isUnconfirmed: isUnsure(reading), heldBack: heldBack, move: move)
        }
    }

    /// `WALKS=100000` in the environment for more.
    @Test func `random walks: it tells what an obvious evaluator tells, and nothing else`() {
        let walks = getenv("WALKS").flatMap { Int(String(cString: $0)) } ?? 2000
        let seed = getenv("SEED").flatMap { UInt64(String(cString: $0)) } ?? UInt64.random(in: 0...999_999)
        var generator = SeededGenerator(seed: seed)
        var told = 0
        for walk in 0..<walks {
            let rule = Self.rule(&generator)
            var (evaluator, obvious) = (AlertEvaluator(rule), Obvious(rule: rule))
            var (time, price) = (Int64(0), Int64(10_000))
            for _ in 0..<50 {
                time += Int64.random(in: 200...20_000, using: &generator)
                price = max(5000, price + Int64.random(in: -300...300, using: &generator))
                var reading = AlertReading(
                    at: time, Int.random(in: 0..<12, using: &generator) == 0 ? nil : Price(price, scale: 2))
                reading.confirmation = BTCPriceCore.Confirmation.allCases.randomElement(using: &generator) ?? .single
                reading.isInDoubt = Int.random(in: 0..<6, using: &generator) == 0
                reading.uncertainty =
                    Int.random(in: 0..<6, using: &generator) == 0
                    ? nil : Price(Int64.random(in: 1...20, using: &generator), scale: 1)
                let (found, wanted) = (evaluator.see(reading), obvious.see(reading))
                if found != nil { told += 1 }
                guard found == wanted else {
                    Issue.record(
                        "seed \(seed), walk \(walk): \(rule) at \(time): \(String(describing: found)), not \(String(describing: wanted))"
                    )
                    return
                }
            }
        }
        print("seed \(seed): \(walks) walks, \(told) alerts, not one more or less")
    }

    private static func rule(_ generator: inout SeededGenerator) -> AlertRule {
        func seconds(_ choices: [Int64]) -> Duration { .seconds(choices.randomElement(using: &generator) ?? 0) }
        let bound = Price(Int64.random(in: 9700...10_300, using: &generator), scale: 2)
        let conditions: [AlertRule.Condition] = [
            .above(bound), .below(bound),
            .change(
                .percent(Price(Int64.random(in: 1...60, using: &generator), scale: 1)), within: seconds([60, 120, 600])),
            .change(.amount(Price(Int64.random(in: 10...500, using: &generator), scale: 2)), within: nil),
            .stale(seconds([5, 20])), .unsure(bound: Bool.random(using: &generator) ? 1 : nil),
        ]
        var rule = AlertRule(conditions.randomElement(using: &generator) ?? conditions[0])
        rule.hold = seconds([0, 0, 10, 90])
        rule.pause = seconds([0, 0, 60])
        rule.rearm = [0, 1, 2].randomElement(using: &generator) ?? 0
        rule.isOnce = Int.random(in: 0..<8, using: &generator) == 0
        rule.trust = [.confirmed, .any, .lasting].randomElement(using: &generator) ?? .any
        return rule
    }
}
