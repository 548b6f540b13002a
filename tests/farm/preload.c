// Stands before the C library in a process under test (LD_PRELOAD): a clock that was set, and a
// disk without room. What holds is read
// from a small file that the test maps too, so that it changes while the process runs:
//
//     8 bytes   seconds that the wall clock is ahead (below 0: behind)
//     8 bytes   0: the disk has room; 1: it says that it has none, and takes nothing more;
//               2: it says that it has some, and takes
//               nothing more; 3: it says that it has none, and takes what comes: its last
//               bytes, kept for what was begun
//
// The file is SHIM_STATE, the disk is everything below the folder SHIM_DISK.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct state {
    volatile long long ahead_secs;
    volatile long long disk;
};

static const struct state *state;
static char disk[PATH_MAX];

static int takes_nothing(void) {
    return state != NULL && (state->disk == 1 || state->disk == 2);
}

static int says_full(void) {
    return state != NULL && (state->disk == 1 || state->disk == 3);
}

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("SHIM_STATE"), *folder = getenv("SHIM_DISK");
    if (folder != NULL && realpath(folder, disk) == NULL) {
        snprintf(disk, sizeof disk, "%s", folder);
    }
    int opened = file == NULL ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    if (opened < 0) {
        return;
    }
    void *mapped = mmap(NULL, sizeof *state, PROT_READ, MAP_SHARED, opened, 0);
    state = mapped == MAP_FAILED ? NULL : mapped;
    close(opened);
}

static void *next(const char *name) {
    return dlsym(RTLD_NEXT, name);
}

// The clock.

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL) {
        real = (int (*)(clockid_t, struct timespec *))next("clock_gettime");
    }
    int result = real(clock, time);
    if (result == 0 && state != NULL &&
        (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += state->ahead_secs;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into != NULL) {
        *into = now.tv_sec;
    }
    return now.tv_sec;
}

// The disk. What was written may be written over, as on a real one; nothing grows.

static int is_below(const char *path) {
    size_t length = strlen(disk);
    return length > 0 && strncmp(path, disk, length) == 0 &&
           (path[length] == '/' || path[length] == 0);
}

static int is_on_disk(int file) {
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length <= 0) {
        return 0;
    }
    path[length] = 0;
    return is_below(path);
}

// Whether a file would grow to `end` on a disk that takes nothing more.
static int is_full(int file, long long end) {
    struct stat known;
    if (!takes_nothing() || fstat(file, &known) != 0 || !S_ISREG(known.st_mode)) {
        return 0;
    }
    return end > known.st_size && is_on_disk(file);
}

static long long end_of_next(int file, long long length) {
    if (fcntl(file, F_GETFL) & O_APPEND) {
        return LLONG_MAX;
    }
    off_t here = lseek(file, 0, SEEK_CUR);
    return here < 0 ? 0 : here + length;
}

static long long length_of(const struct iovec *parts, int count) {
    long long length = 0;
    for (int i = 0; i < count; i++) {
        length += (long long)parts[i].iov_len;
    }
    return length;
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (real == NULL) { \
        real = (result(*)(__VA_ARGS__))next(name); \
    }
#define REFUSE_IF_FULL(file, end) \
    if (is_full(file, end)) { \
        errno = ENOSPC; \
        return -1; \
    }

ssize_t write(int file, const void *bytes, size_t length) {
    REAL(ssize_t, "write", int, const void *, size_t)
    REFUSE_IF_FULL(file, end_of_next(file, (long long)length))
    return real(file, bytes, length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int)
    REFUSE_IF_FULL(file, end_of_next(file, length_of(parts, count)))
    return real(file, parts, count);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t at) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t)
    REFUSE_IF_FULL(file, at + (long long)length)
    return real(file, bytes, length, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    return pwrite(file, bytes, length, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    REAL(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t)
    REFUSE_IF_FULL(file, at + length_of(parts, count))
    return real(file, parts, count, at);
}

int ftruncate64(int file, off64_t length) {
    REAL(int, "ftruncate64", int, off64_t)
    REFUSE_IF_FULL(file, length)
    return real(file, length);
}

int posix_fallocate64(int file, off64_t at, off64_t length) {
    REAL(int, "posix_fallocate64", int, off64_t, off64_t)
    return is_full(file, at + length) ? ENOSPC : real(file, at, length);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length,
                        unsigned flags) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned)
    REFUSE_IF_FULL(to, LLONG_MAX)
    return real(from, from_at, to, to_at, length, flags);
}

int statvfs64(const char *path, struct statvfs64 *told) {
    REAL(int, "statvfs64", const char *, struct statvfs64 *)
    int result = real(path, told);
    char whole[PATH_MAX];
    if (result == 0 && says_full() && realpath(path, whole) != NULL && is_below(whole)) {
        told->f_bavail = told->f_bfree = 0;
    }
    return result;
}

int statvfs(const char *path, struct statvfs *told) {
    // The same structure where `long` has 64 bits.
    return statvfs64(path, (struct statvfs64 *)told);
}
