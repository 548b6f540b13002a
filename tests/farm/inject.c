// Runs a program, and does one thing to one of its system calls: those that open, write, cut,
// sync, name or remove something below a folder. A tracer sees calls that no library stands before.
//
//     inject FOLDER REPORT NUMBER FAULT PROGRAM ARGUMENT...
//
// NUMBER counts those calls of all its threads from 1; 0 leaves all of them as they are. The calls
// are written to REPORT, a line each, with ` <-` behind the one that was reached. FAULT is one of
//
//     full    it fails with ENOSPC
//     killed  the program is killed before the call
//     bit     one bit of what it writes is another one; everything goes on
//     cut     half of what it writes is written, and the program is killed
//
// The last two do nothing, and say so by ` -` in the report, where a call writes no bytes. x86-64.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

// What is known of a kind of call. Which argument is a file, a path or a second path; -1: none.
struct kind {
    int number;
    const char *name;
    int file, path, bytes, length;
};

static const struct kind KINDS[] = {
    {SYS_write, "write", 0, -1, 1, 2},
    {SYS_pwrite64, "pwrite64", 0, -1, 1, 2},
    {SYS_writev, "writev", 0, -1, -1, -1},
    {SYS_pwritev, "pwritev", 0, -1, -1, -1},
    {SYS_copy_file_range, "copy_file_range", 2, -1, -1, -1},
    {SYS_sendfile, "sendfile", 0, -1, -1, -1},
    {SYS_ftruncate, "ftruncate", 0, -1, -1, -1},
    {SYS_fallocate, "fallocate", 0, -1, -1, -1},
    {SYS_fsync, "fsync", 0, -1, -1, -1},
    {SYS_fdatasync, "fdatasync", 0, -1, -1, -1},
    {SYS_sync_file_range, "sync_file_range", 0, -1, -1, -1},
    {SYS_fchmod, "fchmod", 0, -1, -1, -1},
    {SYS_open, "open", -1, 0, -1, -1},
    {SYS_openat, "openat", -1, 1, -1, -1},
    {SYS_creat, "creat", -1, 0, -1, -1},
    {SYS_mkdir, "mkdir", -1, 0, -1, -1},
    {SYS_mkdirat, "mkdirat", -1, 1, -1, -1},
    {SYS_chmod, "chmod", -1, 0, -1, -1},
    {SYS_fchmodat, "fchmodat", -1, 1, -1, -1},
    {SYS_rename, "rename", -1, 1, -1, -1},
    {SYS_renameat, "renameat", -1, 3, -1, -1},
    {SYS_renameat2, "renameat2", -1, 3, -1, -1},
    {SYS_link, "link", -1, 1, -1, -1},
    {SYS_linkat, "linkat", -1, 3, -1, -1},
    {SYS_unlink, "unlink", -1, 0, -1, -1},
    {SYS_unlinkat, "unlinkat", -1, 1, -1, -1},
    {SYS_rmdir, "rmdir", -1, 0, -1, -1},
};
enum { COUNT = sizeof KINDS / sizeof KINDS[0] };

static void fail(const char *what) {
    perror(what);
    exit(120);
}

// The program: its calls of these kinds stop for the tracer.
static void become(char **arguments) {
    struct sock_filter filter[COUNT + 4];
    int at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++) {
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
                                                    (unsigned)KINDS[i].number,
                                                    (unsigned char)(COUNT - i), 0);
    }
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {(unsigned short)at, filter};
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fail("seccomp");
    }
    execvp(arguments[0], arguments);
    fail(arguments[0]);
}

static int read_memory(pid_t thread, unsigned long long from, void *into, size_t length) {
    struct iovec here = {into, length}, there = {(void *)from, length};
    return process_vm_readv(thread, &here, 1, &there, 1, 0) == (ssize_t)length ? 0 : -1;
}

static void write_byte(pid_t thread, unsigned long long at, unsigned char byte) {
    struct iovec here = {&byte, 1}, there = {(void *)at, 1};
    process_vm_writev(thread, &here, 1, &there, 1, 0);
}

// The path that a call is about, or an empty one.
static void path_of(pid_t thread, const struct kind *kind, const unsigned long long *values,
                    char *path) {
    path[0] = 0;
    if (kind->file >= 0) {
        char name[64];
        snprintf(name, sizeof name, "/proc/%d/fd/%d", thread, (int)values[kind->file]);
        ssize_t length = readlink(name, path, PATH_MAX - 1);
        path[length > 0 ? length : 0] = 0;
        return;
    }
    unsigned long long from = values[kind->path];
    for (int at = 0; at < PATH_MAX - 1; at++) {
        if (read_memory(thread, from + (unsigned)at, path + at, 1) != 0) {
            path[0] = 0;
            return;
        }
        if (path[at] == 0) {
            break;
        }
    }
}

// Whether an opening can change anything.
static int opens_to_write(const struct kind *kind, const unsigned long long *values) {
    if (kind->number != SYS_open && kind->number != SYS_openat) {
        return 1;
    }
    int flags = (int)values[kind->path + 1];
    return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

// What is asked for, and how far it is.
struct state {
    const char *folder, *fault;
    FILE *report;
    long number, reached;
    pid_t process;
    // The thread whose call is awaited, and the byte of its memory that was changed.
    pid_t awaited;
    unsigned long long flipped;
};

static void flip(pid_t thread, unsigned long long at) {
    unsigned char byte;
    if (read_memory(thread, at, &byte, 1) == 0) {
        write_byte(thread, at, byte ^ 0x10);
    }
}

// Does what is asked for to the call that is reached. Returns whether the call's end is awaited.
static int strike(struct state *state, pid_t thread, const struct kind *kind,
                  struct user_regs_struct *registers, const unsigned long long *values) {
    if (strcmp(state->fault, "killed") == 0) {
        kill(state->process, SIGKILL);
        return 0;
    }
    if (strcmp(state->fault, "full") == 0) {
        registers->orig_rax = (unsigned long long)-1;
        registers->rax = (unsigned long long)-ENOSPC;
        ptrace(PTRACE_SETREGS, thread, NULL, registers);
        return 0;
    }
    unsigned long long length = values[kind->length];
    if (strcmp(state->fault, "cut") == 0) {
        registers->rdx = length / 2;
        ptrace(PTRACE_SETREGS, thread, NULL, registers);
    } else {
        state->flipped = values[kind->bytes] + length / 2;
        flip(thread, state->flipped);
    }
    state->awaited = thread;
    return 1;
}

// A call begins. Returns how the thread goes on.
static int begins(struct state *state, pid_t thread) {
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, thread, NULL, &registers);
    unsigned long long values[6] = {registers.rdi, registers.rsi, registers.rdx,
                                    registers.r10, registers.r8,  registers.r9};
    const struct kind *kind = KINDS;
    while (kind->number != (int)registers.orig_rax) {
        kind++;
    }
    char path[PATH_MAX];
    path_of(thread, kind, values, path);
    size_t length = strlen(state->folder);
    if (strncmp(path, state->folder, length) != 0 || !opens_to_write(kind, values)) {
        return PTRACE_CONT;
    }
    int bytes = kind->bytes >= 0 && values[kind->length] > 0;
    int writes = strcmp(state->fault, "bit") == 0 || strcmp(state->fault, "cut") == 0;
    int is_it = ++state->reached == state->number, is_struck = is_it && (bytes || !writes);
    const char *mark = is_struck ? " <-" : is_it ? " -" : "";
    fprintf(state->report, "%s %s%s\n", kind->name, path + length, mark);
    fflush(state->report);
    int awaited = is_struck && strike(state, thread, kind, &registers, values);
    return awaited ? PTRACE_SYSCALL : PTRACE_CONT;
}

// The call that was changed has ended: of a flipped bit, only the disk has it.
static void ended(struct state *state, pid_t thread) {
    if (thread == state->awaited && state->flipped != 0) {
        flip(thread, state->flipped);
    } else if (thread == state->awaited) {
        kill(state->process, SIGKILL);
    }
    state->awaited = 0;
}

// Follows the program to its end. Returns its status, as a shell has it.
static int follow(struct state *state) {
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) {
            return 121;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == state->process) {
                return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
            continue;
        }
        int signal = WSTOPSIG(status), resume = PTRACE_CONT;
        if (signal == (SIGTRAP | 0x80)) {
            ended(state, thread);
            signal = 0;
        } else if (status >> 8 == (SIGTRAP | (PTRACE_EVENT_SECCOMP << 8))) {
            resume = begins(state, thread);
            signal = 0;
        } else if (status >> 16 != 0 || signal == SIGSTOP || signal == SIGTRAP) {
            signal = 0;
        }
        ptrace(resume, thread, NULL, (void *)(long)signal);
    }
}

int main(int count, char **arguments) {
    if (count < 6) {
        return 2;
    }
    struct state state = {.folder = arguments[1], .fault = arguments[4]};
    state.report = fopen(arguments[2], "we");
    state.number = atol(arguments[3]);
    if (state.report == NULL) {
        fail(arguments[2]);
    }
    state.process = fork();
    if (state.process == 0) {
        become(arguments + 5);
    }
    int status;
    waitpid(state.process, &status, 0);
    ptrace(PTRACE_SETOPTIONS, state.process, NULL,
           PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
               PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);
    ptrace(PTRACE_CONT, state.process, NULL, NULL);
    int result = follow(&state);
    fclose(state.report);
    return result;
}
