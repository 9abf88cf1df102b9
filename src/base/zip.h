/* zip.h - as much of the zip format as .npz needs: stored and deflated members, zip64 sizes.
 * Messages name the member; the caller puts the file in front. */
#ifndef PARE_SRC_ZIP_H
#define PARE_SRC_ZIP_H
#include <pare/base.h>

/* Marks and sizes of the records, shared by reader and writer. */
enum {
    ZIP_LOCAL = 0x04034b50,
    ZIP_CENTRAL = 0x02014b50,
    ZIP_END = 0x06054b50,
    ZIP_END64 = 0x06064b50,
    ZIP_LOCATOR64 = 0x07064b50,
    ZIP_LOCAL_BYTES = 30,
    ZIP_CENTRAL_BYTES = 46,
    ZIP_END_BYTES = 22,
    ZIP_END64_BYTES = 56,
    ZIP_LOCATOR64_BYTES = 20,
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8
};

typedef struct pare_zip_member {
    const char *name;
    unsigned method, flags;
    uint32_t crc;
    size_t packed, size; /* bytes in the file and after unpacking, as claimed */
    size_t local, data;  /* offsets of the local header and of the packed bytes */
} pare_zip_member;

typedef struct pare_zip {
    const uint8_t *bytes;
    size_t total, count;
    pare_zip_member *member;
} pare_zip;

/* Reads the directory: afterwards every member lies inside the file, none overlaps another. */
PARE_MUST_USE pare_status pare_zip_scan(pare_zip *z, pare_arena *a, const uint8_t *bytes,
                                        size_t total, pare_err *err);
/* The unpacked bytes, CRC checked: borrowed from the file when stored (*in_arena false), else in
 * the arena. Nothing is allocated for a size the packed bytes cannot hold. */
PARE_MUST_USE pare_status pare_zip_unpack(const uint8_t **out, bool *in_arena, const pare_zip *z,
                                          const pare_zip_member *m, pare_arena *a, pare_err *err);

/* Writing: begin, add each member, end. `always64` writes zip64 records even where they are not
 * needed (for tests: no 4 GiB file is). */
typedef struct pare_zip_writer {
    pare_out *out;
    pare_arena *arena; /* holds the directory until the end */
    pare_zip_member *member;
    size_t count, capacity, offset;
    bool always64;
} pare_zip_writer;

PARE_MUST_USE pare_status pare_zip_begin(pare_zip_writer *w, pare_out *out, pare_arena *a,
                                         size_t members, pare_err *err);
/* The member's content is head followed by body. */
PARE_MUST_USE pare_status pare_zip_add(pare_zip_writer *w, const char *name, const void *head,
                                       size_t head_bytes, const void *body, size_t body_bytes,
                                       bool deflated, pare_err *err);
PARE_MUST_USE pare_status pare_zip_end(pare_zip_writer *w, pare_err *err);
#endif
