/* header_checksum.h - the checksum that a header carries of itself.
 *
 * The metadata value "pare.sha256" is the SHA-256 of the JSON header in which its own 64 digits
 * are zeros ('0'). So every byte of the header is covered, also the spaces. */
#ifndef PARE_MODEL_HEADER_CHECKSUM_H
#define PARE_MODEL_HEADER_CHECKSUM_H
#include <pare/base.h>

#define CHECKSUM_KEY    "pare.sha256"
#define CHECKSUM_DIGITS 64

/* Where the 64 digits stand in the header; NULL when they do not. */
char *checksum_find(char *header, size_t bytes);
/* Writes the digits into a header that has zeros there. */
PARE_MUST_USE pare_status checksum_set(char *header, size_t bytes, pare_err *err);
/* PARE_ERR_INPUT when the header was changed. */
PARE_MUST_USE pare_status checksum_check(const char *header, size_t bytes, pare_err *err);
#endif
