// Virtual days of the shipped core, on one thread and a clock of its own:
//
//     rehearsal week SEED        a week of everything that exchanges do, with clients in a loop and a restart a day
//     rehearsal failure SEED     a day in which no source ever answers
//     rehearsal alternate SEED   a day in which every second answer of every source is none
//
// Prints figures, and leaves it to Tests/System to judge them.

import BTCPriceCore
import BTCPriceNetworking
import Glibc
import TestSupport

let arguments = CommandLine.arguments
guard arguments.count == 3, let seed = UInt64(arguments[2]) else {
    print("usage: rehearsal week|failure|alternate SEED")
    exit(64)
}
let clock = VirtualClock()
let isOver = Shared(false)
VirtualTime.shared.takeOver()
Task.detached {
    do {
        switch arguments[1] {
        case "week": try await rehearseWeek(seed: seed, clock: clock)
        case "failure": try await rehearseDay(seed: seed, clock: clock, faults: { _ in [.outage] }, calm: .zero)
        case "alternate": try await rehearseAlternation(seed: seed, clock: clock)
        default: print("unknown rehearsal")
        }
    } catch {
        print("failed: \(error)")
    }
    isOver.update { $0 = true }
}
VirtualTime.shared.run(clock) { isOver.current }
