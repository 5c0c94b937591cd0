/*
 * The least that can answer frames: one thread, epoll, one canned answer for every frame that comes.
 *
 *     echo SOCKET ANSWER
 *
 * SOCKET is the path of a Unix socket, ANSWER a file with one whole frame. Frames are taken apart as
 * the protocol demands, all that came with one read is answered with one write, and nothing of what
 * they say is looked at. Runs until it is killed.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD = 4, IN_MAX = 1 << 16, EVENTS = 256, FILES_MAX = 1 << 16 };

struct connection {
    size_t held;
    uint8_t bytes[IN_MAX];
};

static struct connection *connections[FILES_MAX];
static uint8_t *answer, *out;
static size_t answer_size, out_max;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void load_answer(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    answer = malloc(IN_MAX);
    answer_size = fread(answer, 1, IN_MAX, file);
    fclose(file);
    out_max = (IN_MAX / (HEAD + 1) + 1) * answer_size;
    out = malloc(out_max);
}

static void watch(int poll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
}

static void hang_up(int fd) {
    close(fd);
    free(connections[fd]);
    connections[fd] = NULL;
}

static void serve(int fd) {
    struct connection *one = connections[fd];
    ssize_t got = read(fd, one->bytes + one->held, IN_MAX - one->held);
    if (got <= 0) {
        hang_up(fd);
        return;
    }
    one->held += got;
    size_t at = 0, size = 0;
    while (one->held - at >= HEAD) {
        uint32_t length;
        memcpy(&length, one->bytes + at, HEAD);
        length = __builtin_bswap32(length);
        if (length > IN_MAX - HEAD) {
            hang_up(fd);
            return;
        }
        if (one->held - at < HEAD + length) break;
        at += HEAD + length;
        memcpy(out + size, answer, answer_size);
        size += answer_size;
    }
    memmove(one->bytes, one->bytes + at, one->held - at);
    one->held -= at;
    if (size && write(fd, out, size) != (ssize_t)size) hang_up(fd);
}

int main(int count, char **argument) {
    if (count != 3) {
        fputs("usage: echo SOCKET ANSWER\n", stderr);
        return 2;
    }
    load_answer(argument[2]);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, argument[1], sizeof address.sun_path - 1);
    int door = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(door, (void *)&address, sizeof address) || listen(door, 1024)) fail(argument[1]);
    int poll = epoll_create1(0);
    watch(poll, door);
    struct epoll_event events[EVENTS];
    for (;;) {
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd != door) {
                serve(fd);
                continue;
            }
            int guest = accept(door, NULL, NULL);
            if (guest < 0 || guest >= FILES_MAX) fail("accept");
            connections[guest] = calloc(1, sizeof(struct connection));
            watch(poll, guest);
        }
    }
}
