/// The watchers, and how far a state has come on its way to them: a pure value.
///
/// A fan-out serves them in slices, and meanwhile they come and go. Nobody may be missed and nobody served twice, so those
/// who have the state stay in front of those who have not. Every operation takes the same time, however many there are.
struct Watchers {
    private var order: [Int32] = []
    /// By descriptor: the place in `order`, or -1.
    private var places: [Int32] = []
    private var served = 0

    /// How many there are.
    var count: Int { order.count }

    /// Adds one, behind the others.
    mutating func enter(_ descriptor: Int32) {
        let missing = Int(descriptor) + 1 - places.count
        if missing > 0 { places.append(contentsOf: repeatElement(-1, count: missing)) }
        places[Int(descriptor)] = Int32(order.count)
        order.append(descriptor)
    }

    /// Takes one out.
    /// - Returns: Whether it was one.
    mutating func leave(_ descriptor: Int32) -> Bool {
        guard Int(descriptor) < places.count, places[Int(descriptor)] >= 0 else { return false }
        var hole = Int(places[Int(descriptor)])
        if hole < served {
            served -= 1
            put(order[served], at: hole)
            hole = served
        }
        let last = order.removeLast()
        if hole < order.count { put(last, at: hole) }
        places[Int(descriptor)] = -1
        return true
    }

    /// Begins a fan-out: everybody is to be served.
    mutating func beginFanOut() {
        served = 0
    }

    /// The next one to serve; `nil` when everybody has been.
    mutating func nextToServe() -> Int32? {
        guard served < order.count else { return nil }
        defer { served += 1 }
        return order[served]
    }

    private mutating func put(_ descriptor: Int32, at place: Int) {
        order[place] = descriptor
        places[Int(descriptor)] = Int32(place)
    }
}
