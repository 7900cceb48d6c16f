extension VenueShape {
    /// The headers of a response besides `Content-Type`, `Content-Length` and `Date`: as many, and as long, as on the exchange.
    static func headers(of venue: VenueName) -> [(name: String, value: String)] {
        switch venue {
        case .binance: binanceHeaders
        case .cryptocompare, .coinbase, .bitstamp, .kraken: usualHeaders
        }
    }

    private static let binanceHeaders = [
        (name: "Connection", value: "keep-alive"), ("Server", "nginx"),
        ("x-mbx-uuid", "00000000-0000-4000-8000-000000000000"), ("x-mbx-used-weight", "2"),
        ("x-mbx-used-weight-1m", "2"), ("Strict-Transport-Security", "max-age=31536000; includeSubdomains"),
        ("X-Frame-Options", "SAMEORIGIN"), ("X-Xss-Protection", "1; mode=block"),
        ("X-Content-Type-Options", "nosniff"), ("Content-Security-Policy", "default-src 'self'"),
        ("X-Content-Security-Policy", "default-src 'self'"), ("X-WebKit-CSP", "default-src 'self'"),
        ("Cache-Control", "no-cache, no-store, must-revalidate"), ("Pragma", "no-cache"), ("Expires", "0"),
        ("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS"),
        ("X-Cache", "Miss from cloudfront"),
        ("Via", "1.1 00000000000000000000000000000000.cloudfront.net (CloudFront)"),
        ("X-Amz-Cf-Pop", "FRA56-P1"),
        ("X-Amz-Cf-Id", "00000000000000000000000000000000000000000000000000000A=="),
    ]

    private static let usualHeaders = [
        (name: "Connection", value: "keep-alive"), ("Server", "cloudflare"), ("CF-RAY", "0000000000000000-FRA"),
        ("CF-Cache-Status", "DYNAMIC"), ("Cache-Control", "public, max-age=1"), ("Vary", "Origin, Accept-Encoding"),
        ("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization"),
        ("Access-Control-Allow-Methods", "GET, POST, DELETE, PUT"), ("Access-Control-Max-Age", "7200"),
        ("Strict-Transport-Security", "max-age=15552000; includeSubDomains; preload"),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "SAMEORIGIN"), ("X-XSS-Protection", "1; mode=block"),
        ("ETag", "W/\"00-0000000000000000000000000000\""), ("Trace-Id", "0000000000000000000"),
        ("Set-Cookie", "__cf_bm=\(String(repeating: "0", count: 140)); path=/; HttpOnly; Secure; SameSite=None"),
    ]
}
