/* The parts of OpenSSL 3 that are used. Swift can't call macros, so those have functions here. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* TLS 1.2 at least, or what the system's configuration says if it is more, and no renegotiation. Returns 1, or 0 for failure. */
static inline int btc_priced_prepare(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    return SSL_CTX_get_min_proto_version(context) >= TLS1_2_VERSION || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
}

/* Gives new sessions to `keep` alone, which takes one by returning 1. */
static inline void btc_priced_keep_sessions(SSL_CTX *context, int (*keep)(SSL *, SSL_SESSION *)) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(context, keep);
}

/* The server's name in the first message (RFC 6066). Returns 1, or 0 for failure. */
static inline int btc_priced_name_server(SSL *connection, const char *name) {
    return SSL_set_tlsext_host_name(connection, name) == 1;
}
