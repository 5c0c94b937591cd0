/*
 * Clients of a frame server on a Unix socket, in one thread that costs next to nothing.
 *
 *     load SOCKET CLIENTS DEPTH HELLO REQUESTS IDLE
 *
 * Connects CLIENTS that will be busy and IDLE that only stay, says HELLO (a file with one frame) for
 * each, and writes "ready". Each line on standard input is a number of milliseconds: so long every
 * busy client sends DEPTH of the frames of the file REQUESTS, waits for all their answers, and goes
 * on. Then it writes
 *
 *     answers refusals elapsed p50 p99 max
 *
 * with times in nanoseconds, the last three from sending to the last answer of a turn. The end of
 * the input is its end.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HEAD = 4, IN_MAX = 1 << 17, EVENTS = 256, TURNS_MAX = 1 << 22 };

struct client {
    int fd;
    int left;      /* answers of this turn that have not come */
    size_t at;     /* the next request */
    uint64_t sent; /* when this turn began */
    size_t held;
    uint8_t *bytes;
};

static const char *path;
static uint8_t *hello, *requests;
static size_t hello_size, *starts, count;
static int depth;
static uint64_t *turns;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint8_t *contents(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file) fail(name);
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    uint8_t *found = malloc(*size);
    if (fread(found, 1, *size, file) != *size) fail(name);
    fclose(file);
    return found;
}

static uint32_t length_at(const uint8_t *bytes) {
    uint32_t length;
    memcpy(&length, bytes, HEAD);
    return __builtin_bswap32(length);
}

/* The requests twice, one behind the other: a turn is one piece wherever it begins. */
static void load_requests(const char *name) {
    size_t size;
    uint8_t *once = contents(name, &size);
    requests = malloc(2 * size);
    memcpy(requests, once, size);
    memcpy(requests + size, once, size);
    starts = malloc((2 * size / HEAD + 1) * sizeof *starts);
    size_t at = 0, found = 0;
    while (at < 2 * size) {
        starts[found++] = at;
        at += HEAD + length_at(requests + at);
    }
    starts[found] = at;
    count = found / 2;
}

/* Whether the answer in this payload is none: behind the id stands something else than nil. */
static int is_refusal(const uint8_t *payload) {
    static const int width[] = {1, 2, 4, 8};
    int at = 1;
    at += payload[1] >= 0xcc && payload[1] <= 0xcf ? 1 + width[payload[1] - 0xcc] : 1;
    return payload[at] != 0xc0;
}

static void write_all(int fd, const uint8_t *bytes, size_t size) {
    while (size) {
        ssize_t done = write(fd, bytes, size);
        if (done <= 0) fail("write");
        bytes += done;
        size -= done;
    }
}

/* Takes what has come; how many whole answers that were, with the refusals among them. */
static int take(struct client *one, long *refusals) {
    ssize_t got = read(one->fd, one->bytes + one->held, IN_MAX - one->held);
    if (got <= 0) {
        fputs("the server has hung up\n", stderr);
        exit(1);
    }
    one->held += got;
    size_t at = 0;
    int answers = 0;
    while (one->held - at >= HEAD && one->held - at >= HEAD + length_at(one->bytes + at)) {
        *refusals += is_refusal(one->bytes + at + HEAD);
        at += HEAD + length_at(one->bytes + at);
        answers++;
    }
    memmove(one->bytes, one->bytes + at, one->held - at);
    one->held -= at;
    return answers;
}

static int greeted(void) {
    static uint8_t bytes[IN_MAX];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    struct client one = {.fd = socket(AF_UNIX, SOCK_STREAM, 0), .bytes = bytes};
    if (one.fd < 0) fail("socket");
    if (connect(one.fd, (void *)&address, sizeof address)) fail("connect");
    write_all(one.fd, hello, hello_size);
    long refusals = 0;
    while (!take(&one, &refusals)) continue;
    return one.fd;
}

static void ask(struct client *one) {
    size_t first = one->at;
    one->at = (first + depth) % count;
    one->left = depth;
    one->sent = now();
    write_all(one->fd, requests + starts[first], starts[first + depth] - starts[first]);
}

static int by_size(const void *one, const void *other) {
    uint64_t left = *(const uint64_t *)one, right = *(const uint64_t *)other;
    return left < right ? -1 : left > right;
}

static void run(int poll, struct client *clients, int busy, uint64_t duration) {
    struct epoll_event events[EVENTS];
    long answers = 0, refusals = 0;
    size_t taken = 0;
    int under_way = busy;
    uint64_t begin = now(), end = begin + duration;
    for (int i = 0; i < busy; i++) ask(clients + i);
    while (under_way) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            struct client *one = clients + events[i].data.u32;
            int found = take(one, &refusals);
            answers += found;
            one->left -= found;
            if (one->left) continue;
            uint64_t time = now();
            if (taken < TURNS_MAX) turns[taken++] = time - one->sent;
            if (time < end)
                ask(one);
            else
                under_way--;
        }
    }
    uint64_t elapsed = now() - begin;
    if (!taken) fail("nobody is busy");
    qsort(turns, taken, sizeof *turns, by_size);
    printf("%ld %ld %llu %llu %llu %llu\n", answers, refusals, (unsigned long long)elapsed,
           (unsigned long long)turns[taken / 2], (unsigned long long)turns[taken * 99 / 100],
           (unsigned long long)turns[taken - 1]);
    fflush(stdout);
}

int main(int given, char **argument) {
    if (given != 7) {
        fputs("usage: load SOCKET CLIENTS DEPTH HELLO REQUESTS IDLE\n", stderr);
        return 2;
    }
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    path = argument[1];
    int busy = atoi(argument[2]), idle = atoi(argument[6]);
    depth = atoi(argument[3]);
    hello = contents(argument[4], &hello_size);
    load_requests(argument[5]);
    if (depth < 1 || (size_t)depth > count) {
        fputs("DEPTH is 1 to the number of requests\n", stderr);
        return 2;
    }
    turns = malloc(TURNS_MAX * sizeof *turns);
    for (int i = 0; i < idle; i++) greeted();
    int poll = epoll_create1(0);
    struct client *clients = calloc(busy ? busy : 1, sizeof *clients);
    for (int i = 0; i < busy; i++) {
        clients[i].fd = greeted();
        clients[i].at = count * i / busy;
        clients[i].bytes = malloc(IN_MAX);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, clients[i].fd, &event)) fail("epoll_ctl");
    }
    puts("ready");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin))
        run(poll, clients, busy, strtoull(line, NULL, 10) * 1000000ull);
}
