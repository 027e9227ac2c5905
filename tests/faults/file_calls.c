/* Preloaded into the ranks of a test: records what changes files, or lets calls fail. Watches what is under the folder
 * KZERO_CALLS_ROOT, an absolute path without symbolic links.
 *
 * KZERO_CALLS_LOG: the file to record to, one line a call in the order in which they took effect over all ranks,
 *     RANK create INODE PATH | mkdir INODE PATH | rename FROM\tTO | unlink PATH | fsync INODE |
 *          truncate INODE SIZE | grow INODE SIZE | write INODE OFFSET BYTES | report BYTES
 * with paths relative to the root. The bytes follow the line of a write, and of a report: what was written to the file
 * KZERO_CALLS_REPORT. A call that would change a file in any other way ends the process.
 *
 * KZERO_CALLS_FAIL: "CALL NAME ERRNO RANK FIRST COUNT" lets COUNT calls of one rank from the FIRST on (counted from 1) fail with
 * this error, on files whose path ends with NAME. CALL is open, write, allocate, fsync or close; a close, which
 *     counts only for a file that was open for writing, takes effect nevertheless. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { path_bytes = 4096, line_bytes = 2 * path_bytes };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;
static char root[path_bytes], report[path_bytes];
static size_t root_length;
static int rank;

static char fail_call[16], fail_name[256];
static int fail_errno, fail_first, fail_count, fail_seen;

static void stop(const char* what) {
  fprintf(stderr, "file_calls: %s\n", what);
  abort();
}

/* The next definition of the function that this is called in. */
#define NEXT(type, name, ...)                                         \
  static type (*next)(__VA_ARGS__);                                   \
  if (!next) next = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void start(void) {
  const char* text = getenv("KZERO_CALLS_ROOT");
  if (!text) return;
  snprintf(root, sizeof root, "%s", text);
  root_length = strlen(root);
  const char* number = getenv("PMI_RANK");
  rank = number ? atoi(number) : 0;
  text = getenv("KZERO_CALLS_REPORT");
  if (text) snprintf(report, sizeof report, "%s", text);
  text = getenv("KZERO_CALLS_FAIL");
  int fail_rank = -1;
  if (text && sscanf(text, "%15s %255s %d %d %d %d", fail_call, fail_name, &fail_errno, &fail_rank, &fail_first, &fail_count) != 6)
    stop("KZERO_CALLS_FAIL makes no sense");
  if (!number || fail_rank != rank) fail_call[0] = '\0';
  text = getenv("KZERO_CALLS_LOG");
  if (text) log_file = (int)syscall(SYS_openat, AT_FDCWD, text, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (text && log_file < 0) stop("the log cannot be opened");
}

/* Calls of several threads and ranks, each with its record, follow one another. */
static void lock(void) {
  pthread_mutex_lock(&mutex);
  if (log_file >= 0) flock(log_file, LOCK_EX);
}

static void unlock(void) {
  const int error = errno;
  if (log_file >= 0) flock(log_file, LOCK_UN);
  pthread_mutex_unlock(&mutex);
  errno = error;
}

static void put(const void* bytes, size_t count) {
  if (syscall(SYS_write, log_file, bytes, count) != (long)count) stop("the log cannot be written");
}

__attribute__((format(printf, 1, 2))) static void record(const char* format, ...) {
  const int error = errno;
  if (log_file >= 0) {
    char line[line_bytes];
    int length = snprintf(line, sizeof line, "%d ", rank);
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length, format, arguments);
    va_end(arguments);
    if (length + 1 >= (int)sizeof line) stop("a path is too long");
    line[length++] = '\n';
    put(line, (size_t)length);
  }
  errno = error;
}

/* The path relative to the root; null if it is elsewhere. */
static const char* below_root(const char* path) {
  if (root_length == 0 || strncmp(path, root, root_length) != 0) return NULL;
  if (path[root_length] != '/') return NULL;
  return path + root_length + 1;
}

static int path_of(int file, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t length = readlink(link, path, path_bytes - 1);
  if (length < 0) return 0;
  path[length] = '\0';
  return 1;
}

/* The path that the call names, relative to the root; null if it is elsewhere. */
static const char* watched_at(int folder, const char* path, char* whole) {
  if (root_length == 0) return NULL;
  const int error = errno;
  if (path[0] == '/') {
    snprintf(whole, path_bytes, "%s", path);
  } else {
    if (folder == AT_FDCWD ? !getcwd(whole, path_bytes) : !path_of(folder, whole)) whole[0] = '\0';
    const size_t length = strlen(whole);
    snprintf(whole + length, path_bytes - length, "/%s", path);
  }
  errno = error;
  const char* found = below_root(whole);
  if (found && (strstr(found, "//") || strstr(found, "./"))) stop("a path is not plain");
  return found;
}

static const char* watched(int file, char* whole) {
  if (root_length == 0) return NULL;
  const int error = errno;
  const char* found = path_of(file, whole) ? below_root(whole) : NULL;
  errno = error;
  return found;
}

static unsigned long inode_of(int file) {
  struct stat status;
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

static unsigned long inode_at(int folder, const char* path) {
  struct stat status;
  const int error = errno;
  const int found = fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
  errno = error;
  return found ? status.st_ino : 0;
}

/* Whether this call is to fail; sets errno. */
static int fails(const char* call, const char* path) {
  if (strcmp(call, fail_call) != 0) return 0;
  const size_t length = strlen(path), end = strlen(fail_name);
  if (length < end || strcmp(path + length - end, fail_name) != 0) return 0;
  const int seen = __sync_add_and_fetch(&fail_seen, 1);
  if (seen < fail_first || seen >= fail_first + fail_count) return 0;
  errno = fail_errno;
  return 1;
}

/* Opening */

static int is_written(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0; }

static int open_at(int folder, const char* path, int flags, mode_t mode) {
  char whole[path_bytes];
  const char* name = watched_at(folder, path, whole);
  if (name && fails("open", name)) return -1;
  if (!name || !is_written(flags)) return (int)syscall(SYS_openat, folder, path, flags, mode);
  lock();
  const unsigned long before = inode_at(folder, path);
  const int file = (int)syscall(SYS_openat, folder, path, flags, mode);
  if (file >= 0 && before == 0) record("create %lu %s", inode_of(file), name);
  if (file >= 0 && before != 0 && (flags & O_TRUNC)) record("truncate %lu 0", before);
  unlock();
  return file;
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name, ...)                                 \
  int name(__VA_ARGS__ const char* path, int flags, ...) { \
    va_list arguments;                                  \
    va_start(arguments, flags);                         \
    const mode_t mode = mode_of(flags, arguments);      \
    va_end(arguments);                                  \
    return open_at(FOLDER, path, flags, mode);          \
  }
#define COMMA ,
#define FOLDER AT_FDCWD
OPEN(open, )
OPEN(open64, )
#undef FOLDER
#define FOLDER folder
OPEN(openat, int folder COMMA)
OPEN(openat64, int folder COMMA)

int creat(const char* path, mode_t mode) { return open_at(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char* path, mode_t mode) { return creat(path, mode); }

FILE* fopen(const char* path, const char* how) {
  NEXT(FILE*, fopen, const char*, const char*);
  char whole[path_bytes];
  if (how[0] != 'r' && watched_at(AT_FDCWD, path, whole)) stop("fopen is not recorded");
  return next(path, how);
}

FILE* fopen64(const char* path, const char* how) { return fopen(path, how); }

int close(int file) {
  char whole[path_bytes];
  const char* name = watched(file, whole);
  const int was_written = name && is_written(fcntl(file, F_GETFL));
  const int result = (int)syscall(SYS_close, file);
  return was_written && result == 0 && fails("close", name) ? -1 : result;
}

/* Bytes */


static void put_parts(const struct iovec* parts, ssize_t bytes) {
  for (; log_file >= 0 && bytes > 0; ++parts) {
    const size_t count = (ssize_t)parts->iov_len < bytes ? parts->iov_len : (size_t)bytes;
    put(parts->iov_base, count);
    bytes -= (ssize_t)count;
  }
}

/* At the file's own position where `offset` is -1. */
static ssize_t write_parts(int file, const struct iovec* parts, int count, off_t offset) {
  char whole[path_bytes];
  const char* name = watched(file, whole);
  if (name && fails("write", name)) return -1;
  const int reports = report[0] && !name && path_of(file, whole) && strcmp(whole, report) == 0;
  if (name || reports) lock();
  off_t begin = offset;
  if (name && offset < 0) {
    if (fcntl(file, F_GETFL) & O_APPEND) stop("appending is not recorded");
    begin = lseek(file, 0, SEEK_CUR);
  }
  /* On this processor the kernel takes an offset in one word. */
  const ssize_t written = offset < 0 ? syscall(SYS_writev, file, parts, count)
                                     : syscall(SYS_pwritev, file, parts, count, offset, 0L);
  if (name && written >= 0) record("write %lu %lld %zd", inode_of(file), (long long)begin, written);
  if (reports && written >= 0) record("report %zd", written);
  if (name || reports) {
    put_parts(parts, written);
    unlock();
  }
  return written;
}

ssize_t write(int file, const void* bytes, size_t count) {
  const struct iovec part = {(void*)bytes, count};
  return write_parts(file, &part, 1, -1);
}

ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  const struct iovec part = {(void*)bytes, count};
  return write_parts(file, &part, 1, offset);
}

ssize_t pwrite64(int file, const void* bytes, size_t count, off_t offset) { return pwrite(file, bytes, count, offset); }
ssize_t writev(int file, const struct iovec* parts, int count) { return write_parts(file, parts, count, -1); }
ssize_t pwritev(int file, const struct iovec* parts, int count, off_t offset) { return write_parts(file, parts, count, offset); }
ssize_t pwritev64(int file, const struct iovec* parts, int count, off_t offset) { return write_parts(file, parts, count, offset); }

static int resize(int file, int allocates, off_t size, long (*call)(int, off_t, off_t), off_t begin) {
  char whole[path_bytes];
  const char* name = watched(file, whole);
  if (name && fails(allocates ? "allocate" : "truncate", name)) return -1;
  if (name) lock();
  const int result = (int)call(file, begin, size - begin);
  if (name && result == 0) record("%s %lu %lld", allocates ? "grow" : "truncate", inode_of(file), (long long)size);
  if (name) unlock();
  return result;
}

static long call_fallocate(int file, off_t begin, off_t count) { return syscall(SYS_fallocate, file, 0, begin, count); }
static long call_ftruncate(int file, off_t begin, off_t count) { return syscall(SYS_ftruncate, file, begin + count); }

int ftruncate(int file, off_t size) { return resize(file, 0, size, call_ftruncate, 0); }
int ftruncate64(int file, off_t size) { return ftruncate(file, size); }

int fallocate(int file, int mode, off_t begin, off_t count) {
  char whole[path_bytes];
  if (mode != 0 && watched(file, whole)) stop("this fallocate is not recorded");
  if (mode != 0) return (int)syscall(SYS_fallocate, file, mode, begin, count);
  return resize(file, 1, begin + count, call_fallocate, begin);
}

int fallocate64(int file, int mode, off_t begin, off_t count) { return fallocate(file, mode, begin, count); }

int posix_fallocate(int file, off_t begin, off_t count) {
  const int error = errno;
  const int result = resize(file, 1, begin + count, call_fallocate, begin) == 0 ? 0 : errno;
  errno = error;
  return result;
}

int posix_fallocate64(int file, off_t begin, off_t count) { return posix_fallocate(file, begin, count); }

static int sync_file(int file, long number) {
  char whole[path_bytes];
  const char* name = watched(file, whole);
  if (!name && !(path_of(file, whole) && root_length && strcmp(whole, root) == 0)) return (int)syscall(number, file);
  if (name && fails("fsync", name)) return -1;
  lock();
  const int result = (int)syscall(number, file);
  if (result == 0) record("fsync %lu", inode_of(file));
  unlock();
  return result;
}

int fsync(int file) { return sync_file(file, SYS_fsync); }
int fdatasync(int file) { return sync_file(file, SYS_fdatasync); }

/* Names */

static int make_folder(int folder, const char* path, mode_t mode) {
  char whole[path_bytes];
  const char* name = watched_at(folder, path, whole);
  if (name) lock();
  const int result = (int)syscall(SYS_mkdirat, folder, path, mode);
  if (name && result == 0) record("mkdir %lu %s", inode_at(folder, path), name);
  if (name) unlock();
  return result;
}

int mkdir(const char* path, mode_t mode) { return make_folder(AT_FDCWD, path, mode); }
int mkdirat(int folder, const char* path, mode_t mode) { return make_folder(folder, path, mode); }

static int remove_name(int folder, const char* path, int flags) {
  char whole[path_bytes];
  const char* name = watched_at(folder, path, whole);
  if (name) lock();
  const int result = (int)syscall(SYS_unlinkat, folder, path, flags);
  if (name && result == 0) record("unlink %s", name);
  if (name) unlock();
  return result;
}

int unlink(const char* path) { return remove_name(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char* path, int flags) { return remove_name(folder, path, flags); }
int rmdir(const char* path) { return remove_name(AT_FDCWD, path, AT_REMOVEDIR); }

int remove(const char* path) {
  const int result = unlink(path);
  return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

static int change_name(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  char whole_from[path_bytes], whole_to[path_bytes];
  const char* old = watched_at(from_folder, from, whole_from);
  const char* fresh = watched_at(to_folder, to, whole_to);
  if (!old != !fresh || (old && flags != 0)) stop("this renaming is not recorded");
  if (old) lock();
  const int result = (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, flags);
  if (old && result == 0) record("rename %s\t%s", old, fresh);
  if (old) unlock();
  return result;
}

int rename(const char* from, const char* to) { return change_name(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  return change_name(from_folder, from, to_folder, to, 0);
}
int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  return change_name(from_folder, from, to_folder, to, flags);
}

/* What a checkpoint has no use for */

static void refuse(int file, const char* what) {
  char whole[path_bytes];
  if (watched(file, whole)) stop(what);
}

void* mmap(void* place, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (file >= 0 && (protection & PROT_WRITE) && !(flags & MAP_PRIVATE)) refuse(file, "writing through a mapping is not recorded");
  return (void*)syscall(SYS_mmap, place, bytes, protection, flags, file, offset);
}

void* mmap64(void* place, size_t bytes, int protection, int flags, int file, off_t offset) {
  return mmap(place, bytes, protection, flags, file, offset);
}

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t count, unsigned flags) {
  refuse(to, "copy_file_range is not recorded");
  return syscall(SYS_copy_file_range, from, from_offset, to, to_offset, count, flags);
}

ssize_t sendfile(int to, int from, off_t* offset, size_t count) {
  refuse(to, "sendfile is not recorded");
  return syscall(SYS_sendfile, to, from, offset, count);
}

ssize_t sendfile64(int to, int from, off64_t* offset, size_t count) { return sendfile(to, from, offset, count); }

int truncate(const char* path, off_t size) {
  char whole[path_bytes];
  if (watched_at(AT_FDCWD, path, whole)) stop("truncate is not recorded");
  return (int)syscall(SYS_truncate, path, size);
}

int truncate64(const char* path, off_t size) { return truncate(path, size); }

int link(const char* from, const char* to) {
  char whole[path_bytes];
  if (watched_at(AT_FDCWD, to, whole)) stop("links are not recorded");
  return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int symlink(const char* from, const char* to) {
  char whole[path_bytes];
  if (watched_at(AT_FDCWD, to, whole)) stop("links are not recorded");
  return (int)syscall(SYS_symlinkat, from, AT_FDCWD, to);
}
