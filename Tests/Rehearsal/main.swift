// Virtual days of the shipped core, on one thread and a virtual clock:
//
//     rehearsal week SEED [DAYS] a week with all faults of exchanges, with clients in a loop and a restart each day
//     rehearsal failure SEED     a day in which no source responds
//     rehearsal alternate SEED   a day in which every second response of every source is an error
//     rehearsal month SEED [days N] [FROM TO]  a month of faults drawn from real incidents, each shown price compared with the true one;
//                                every tick from FROM to TO is printed
//     rehearsal adversary SEED [hours N] [FROM TO | MODE]  three days in which one venue lies, and the same days without lies, in six
//                                modes
//     rehearsal currencies SEED  an hour of all currencies, with one lying market
//     rehearsal history SEED [DAYS FILE]  days with a tick per second into a history on the disk, each tick with its day
//     rehearsal moments SEED FILE  a quarter of an hour with outages into a history, and the true price of each second
//     rehearsal cases            cases that were not specified when found: for each the seconds wrong and fresh, and the seconds stale
//     rehearsal replay FILE [S]  recorded prices, one line with second and price each, a tick every S seconds
//     rehearsal incidents [DAY]  real incidents, each as a scenario
//     rehearsal scenes [PREFIX]  colluding, drifting, falling and standing markets, for each scene the counts of its ticks; only those whose
//                                name has the prefix
//     rehearsal trials [PREFIX]  lies, outages and honest markets, each second with what is true then, and the limits that are missed;
//                                VERBOSE=1 prints each second, EVENTS=1 what 'btcctl events' says
//     rehearsal --list           the names of all incidents, cases, scenes and modes, each with its file
//
// A name that does not exist is an error with status 2.
// Prints figures. The tests in Tests/System judge them.

import BTCPriceCore
import BTCPriceNetworking
import CommandLine
import Glibc
import TestSupport

/// The command line without its lengths (`days 3`, `hours 12`), and these lengths.
let (arguments, days, hours) = {
    var left = Swift.CommandLine.arguments
    func taken(_ name: String) -> Int? {
        guard let index = left.firstIndex(of: name), index + 1 < left.count else { return nil }
        defer { left.removeSubrange(index...index + 1) }
        return Int(left[index + 1])
    }
    let (days, hours) = (taken("days") ?? 30, taken("hours") ?? 72)
    return (left, days, hours)
}()
let seed = arguments.count > 2 ? UInt64(arguments[2]) ?? 0 : 0
guard arguments.count > 1 else {
    print(
        "usage: rehearsal week|failure|alternate SEED | rehearsal month SEED [FROM TO] | rehearsal incidents [DAY] | "
            + "rehearsal scenes [PREFIX]")
    exit(64)
}

/// Ends the program with status 2, because nothing has this name, and prints the nearest names.
func refuse(_ kind: String, _ word: String, among names: [String]) -> Never {
    let distances = names.map { ($0, Suggestion.distance($0.prefix(word.count).lowercased(), word.lowercased())) }
    let nearest = distances.sorted { $0.1 < $1.1 }.prefix(3).map(\.0)
    let text = "no \(kind) has the name '\(word)'; the nearest: \(nearest.joined(separator: "; "))\n"
    write(STDERR_FILENO, text, text.utf8.count)
    exit(2)
}

/// The entries whose name has the prefix; at least one.
func chosen<Entry>(_ entries: [Entry], _ kind: String, prefix: String, name: (Entry) -> String) -> [Entry] {
    let chosen = entries.filter { name($0).hasPrefix(prefix) }
    guard !chosen.isEmpty else { refuse(kind, prefix, among: entries.map(name)) }
    return chosen
}

if arguments[1] == "--list" {
    for scene in Scene.incidents { print("IncidentList.swift: \(scene.name) \(scene.expected?.what ?? "")") }
    for scene in Scene.cases { print("CaseList.swift: \(scene.name) \(scene.expected?.what ?? "")") }
    for scene in Scene.all { print("SceneList.swift: \(scene.name)") }
    for trial in Trial.all { print("TrialList.swift: \(trial.name)") }
    for mode in AdversaryMode.all { print("Adversary.swift: \(mode.name)") }
    exit(0)
}
let clock = VirtualClock()
let isOver = Shared(false)
VirtualTime.shared.takeOver()
Task.detached {
    do {
        switch arguments[1] {
        case "week":
            try await rehearseWeek(seed: seed, days: arguments.count > 3 ? Int(arguments[3]) ?? 7 : 7, clock: clock)
        case "failure": try await rehearseDay(seed: seed, clock: clock, faults: { _ in [.outage] }, calm: .zero)
        case "alternate": try await rehearseAlternation(seed: seed, clock: clock)
        case "replay":
            try await rehearseReplay(
                of: arguments.count > 2 ? arguments[2] : "",
                interval: .seconds(arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1), on: clock)
        case "month":
            let closely = arguments.dropFirst(3).compactMap(Double.init)
            try await rehearseMonth(
                seed: seed, days: days, clock: clock, closely: closely.count == 2 ? closely[0]..<closely[1] : 0..<0)
        case "adversary":
            let closely = arguments.dropFirst(3).compactMap(Double.init)
            try await rehearseAdversary(
                seed: seed, hours: hours, clock: clock, closely: closely.count == 2 ? closely[0]..<closely[1] : 0..<0,
                only: arguments.dropFirst(3).first { Double($0) == nil })
        case "currencies": try await rehearseCurrencies(seed: seed, clock: clock)
        case "history":
            try await rehearseHistory(
                days: arguments.count > 3 ? Int(arguments[3]) ?? 3 : 3, seed: seed,
                path: arguments.count > 4 ? arguments[4] : nil, clock: clock)
        case "moments" where arguments.count > 3:
            try await rehearseMoments(seed: seed, path: arguments[3], clock: clock)
        case "cases":
            try await rehearse(Scene.cases, "case", on: clock) { "\($1.wrong.count) | \($1.stale.count)" }
        case "scenes": try await rehearseScenes(on: clock, prefix: arguments.dropFirst(2).joined(separator: " "))
        case "trials": try await rehearseTrials(on: clock, prefix: arguments.dropFirst(2).joined(separator: " "))
        case "incidents":
            try await rehearse(Scene.incidents, "incident", prefix: arguments.dropFirst(2).first, on: clock) {
                "\($0.text) | \($1.text)"
            }
        default:
            refuse(
                "rehearsal", arguments[1],
                among: [
                    "week", "failure", "alternate", "month", "adversary", "currencies", "history", "moments", "cases",
                    "replay", "incidents", "scenes", "trials",
                ])
        }
    } catch {
        print("failed: \(error)")
    }
    isOver.update { $0 = true }
}
VirtualTime.shared.run(clock) { isOver.current }
