/* What the system does where foretell writes files, failing at will: loaded before the C library
 * (LD_PRELOAD). FAULTS is "call N ERRNO": the N-th call fails; "full N ERRNO": nothing more can be
 * written after N bytes; "short N 0": no write takes more than N bytes; "count 0 0": nothing fails.
 * FAULTS_SEEN names a file, outside what is tested, that takes the numbers of calls and of bytes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char kind[16];
static long at, error, calls, bytes;

__attribute__((constructor)) static void begin(void) {
    const char *faults = getenv("FAULTS");
    if (faults) sscanf(faults, "%15s %ld %ld", kind, &at, &error);
}

__attribute__((destructor)) static void end(void) {
    const char *seen = getenv("FAULTS_SEEN");
    FILE *file = seen ? fopen(seen, "w") : NULL;
    if (file) {
        fprintf(file, "%ld %ld\n", calls, bytes);
        fclose(file);
    }
}

/* Whether this call fails. */
static int fails(void) {
    long call = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (strcmp(kind, "call") || call != at) return 0;
    errno = error;
    return 1;
}

static int is_file(int fd) {
    struct stat status;
    return fd > 2 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
}

#define REAL(name) __typeof__(name) *real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *from, size_t size) {
    REAL(write);
    if (!is_file(fd)) return real(fd, from, size);
    if (fails()) return -1;
    if (!strcmp(kind, "short") && size > (size_t)at) size = at;
    if (!strcmp(kind, "full")) {
        if (size > 0 && bytes >= at) {
            errno = error;
            return -1;
        }
        if (size > (size_t)(at - bytes)) size = at - bytes;
    }
    ssize_t written = real(fd, from, size);
    if (written > 0) bytes += written;
    return written;
}

#define OPEN(name)                                                \
    int name(const char *path, int flags, ...) {                  \
        REAL(name);                                               \
        va_list more;                                             \
        va_start(more, flags);                                    \
        mode_t mode = flags & O_CREAT ? va_arg(more, mode_t) : 0; \
        va_end(more);                                             \
        return flags & O_CREAT && fails() ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define SYNC(name)                       \
    int name(int fd) {                   \
        REAL(name);                      \
        return is_file(fd) && fails() ? -1 : real(fd); \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to) {
    REAL(rename);
    return fails() ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
    REAL(mkdir);
    return fails() ? -1 : real(path, mode);
}
