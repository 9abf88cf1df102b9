/* Files read: mapped where the system can, read whole where it cannot (pipes, empty files). */
#include <pare/base.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static pare_status io_error(pare_err *err, const char *path, const char *verb)
{
    if (errno == ENOMEM) return pare_no_memory(err);
    return pare_fail(err, PARE_ERR_IO, "%s: cannot %s: %s", path, verb, strerror(errno));
}

static pare_status read_all(pare_blob *b, int fd, pare_err *err)
{
    uint8_t *data = NULL;
    size_t used = 0, room = 0;
    for (;;) {
        if (used == room) {
            const size_t more = room ? room : 65536;
            uint8_t *bigger = room > SIZE_MAX - more ? NULL : realloc(data, room + more);
            if (!bigger) {
                free(data);
                return pare_no_memory(err);
            }
            data = bigger;
            room += more;
        }
        const ssize_t n = read(fd, data + used, room - used);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const pare_status st = io_error(err, b->path, "read");
            free(data);
            return st;
        }
        if (n == 0) break;
        used += (size_t)n;
    }
    b->data = data;
    b->bytes = used;
    return PARE_OK;
}

static pare_status load(pare_blob *b, int fd, pare_err *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return io_error(err, b->path, "look at it");
    if (S_ISDIR(info.st_mode))
        return pare_fail(err, PARE_ERR_IO, "%s: is a folder, a file is needed", b->path);
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        void *p = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p != MAP_FAILED) {
            b->data = p;
            b->bytes = (size_t)info.st_size;
            b->mapped = true;
            return PARE_OK;
        }
    }
    return read_all(b, fd, err);
}

pare_status pare_blob_open(pare_blob **out, const char *path, pare_err *err)
{
    *out = NULL;
    const size_t name_bytes = strlen(path) + 1;
    pare_blob *b = calloc(1, sizeof *b);
    char *name = malloc(name_bytes);
    if (!b || !name) {
        free(b);
        free(name);
        return pare_no_memory(err);
    }
    memcpy(name, path, name_bytes);
    b->path = name;
    b->refs = 1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const pare_status st = fd < 0 ? io_error(err, path, "open") : load(b, fd, err);
    if (fd >= 0) close(fd);
    if (st == PARE_OK)
        *out = b;
    else
        pare_blob_release(b);
    return st;
}

pare_blob *pare_blob_retain(pare_blob *b)
{
    __atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

void pare_blob_release(pare_blob *b)
{
    if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
    /* munmap and free take non-const: this is the owner giving the bytes back. */
    void *data = (void *)(uintptr_t)b->data;
    if (b->mapped)
        munmap(data, b->bytes);
    else
        free(data);
    free(b->path);
    free(b);
}

static bool begins_with(const pare_blob *b, const char *mark, size_t n)
{
    return b->bytes >= n && memcmp(b->data, mark, n) == 0;
}

/* Editors and spreadsheets put byte order marks in front. As text, UTF-16 would be read as odd
 * letters between zeros, and every figure would be about those. */
static pare_status copy_text(char **out, size_t *bytes, pare_arena *a, const pare_blob *b,
                             const char *path, pare_err *err)
{
    if (begins_with(b, "\xFF\xFE", 2) || begins_with(b, "\xFE\xFF", 2))
        return pare_fail(err, PARE_ERR_INPUT, "%s: is UTF-16; save it as UTF-8", path);
    const size_t skip = begins_with(b, "\xEF\xBB\xBF", 3) ? 3 : 0, n = b->bytes - skip;
    size_t room;
    char *const text = pare_add(&room, n, 1) ? pare_alloc(a, room, 1) : NULL;
    if (!text) return pare_no_memory(err);
    memcpy(text, (const char *)b->data + skip, n);
    *out = text;
    if (bytes) *bytes = n;
    return PARE_OK;
}

pare_status pare_text_read(char **out, size_t *bytes, pare_arena *a, const char *path,
                           pare_err *err)
{
    pare_blob *b;
    pare_status st = pare_blob_open(&b, path, err);
    if (st != PARE_OK) return st;
    st = copy_text(out, bytes, a, b, path, err);
    pare_blob_release(b);
    return st;
}

bool pare_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool pare_is_dir(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}
