/* What Swift cannot import from the C library's headers: epoll's union and macros that are not plain numbers. */
#ifndef CLINUX_H
#define CLINUX_H

#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/types.h>

/* glibc declares accept4(2) and the credentials of unix(7) only with _GNU_SOURCE, which would make this module's view of the
   system headers differ from Glibc's own. */
extern int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict size, int flags);

struct clinux_credentials {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/* An event: its bits, and the tag it was registered with. */
struct clinux_event {
    uint32_t events;
    uint64_t tag;
};

/* The bits of epoll(7) that are used, as typed constants. */
static const uint32_t clinux_in = EPOLLIN;
static const uint32_t clinux_out = EPOLLOUT;
static const uint32_t clinux_err = EPOLLERR;
static const uint32_t clinux_hup = EPOLLHUP;
static const uint32_t clinux_edge = EPOLLET;

/* Whether a time service keeps the clock synchronized, as the kernel knows it (adjtimex(2)). */
static inline int clinux_clock_is_synchronized(void) {
    struct timex values = {.modes = 0};
    return adjtimex(&values) != TIME_ERROR;
}

static inline int clinux_create(void) {
    return epoll_create1(EPOLL_CLOEXEC);
}

static inline int clinux_eventfd(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static inline int clinux_add(int epoll, int fd, uint32_t events, uint64_t tag) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

static inline int clinux_modify(int epoll, int fd, uint32_t events, uint64_t tag) {
    struct epoll_event event = {.events = events, .data.u64 = tag};
    return epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event);
}

static inline int clinux_remove(int epoll, int fd) {
    return epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
}

/* epoll_wait(2) with at most 512 events; `timeout` in milliseconds, -1 for none. */
static inline int clinux_wait(int epoll, struct clinux_event *events, int capacity, int timeout) {
    struct epoll_event raw[512];
    if (capacity > 512) capacity = 512;
    int count = epoll_wait(epoll, raw, capacity, timeout);
    for (int i = 0; i < count; i++) {
        events[i].events = raw[i].events;
        events[i].tag = raw[i].data.u64;
    }
    return count;
}

/* A Unix-domain stream socket with SOCK_CLOEXEC and SOCK_NONBLOCK. */
static inline int clinux_unix_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* accept4(2) with SOCK_CLOEXEC and SOCK_NONBLOCK. */
static inline int clinux_accept(int listener) {
    return accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* The credentials of a connection's peer (SO_PEERCRED, unix(7)); -1 with errno set if they are not known. */
static inline int clinux_peer(int fd, struct clinux_credentials *credentials) {
    socklen_t size = sizeof *credentials;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, &size);
}

/* The user id of a connection's peer; -1 if it is not known. */
static inline int64_t clinux_peer_uid(int fd) {
    struct clinux_credentials credentials;
    return clinux_peer(fd, &credentials) < 0 ? -1 : (int64_t)credentials.uid;
}

/* The supplementary groups of a connection's peer (SO_PEERGROUPS, Linux 4.13), and their number; -1 with ERANGE if there are more
   than `capacity`. */
static inline ssize_t clinux_peer_groups(int fd, gid_t *groups, size_t capacity) {
    socklen_t size = (socklen_t)(capacity * sizeof *groups);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0) return -1;
    return (ssize_t)(size / sizeof *groups);
}

/* The bytes that were written to a Unix-domain stream socket or a pipe and that its reader has not read; -1 with errno set if they are not
   known. For a socket (SIOCOUTQ, unix(7)) they include the kernel's own for each write, for a pipe (FIONREAD, pipe(7)) they do not. Of a
   regular file, FIONREAD is something else. */
static inline int clinux_unread(int fd) {
    int count = 0;
    if (ioctl(fd, SIOCOUTQ, &count) == 0) return count;
    return ioctl(fd, FIONREAD, &count) < 0 ? -1 : count;
}

/* Sets the name of the calling thread, as ps(1) shows it: at most 15 bytes (PR_SET_NAME, prctl(2)). */
static inline void clinux_name_thread(const char *name) {
    prctl(PR_SET_NAME, name, 0, 0, 0);
}

#endif
