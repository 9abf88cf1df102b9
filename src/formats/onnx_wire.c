/* onnx_wire.c - Protobuf, as much of it as a writer needs: whole numbers (wire type 0) and bytes
 * (wire type 2). */
#include "base/support.h"
#include "onnx.h"
#include <stdlib.h>
#include <string.h>

enum { NUMBER = 0, BYTES = 2, LONGEST_VARINT = 10 };

static bool reserve_bytes(wire *w, size_t more)
{
    size_t need;
    if (w->failed || !pare_add(&need, w->used, more)) return !(w->failed = true);
    if (need <= w->capacity) return true;
    const size_t capacity = 2 * need + 256;
    uint8_t *const data = realloc(w->data, capacity);
    if (!data) return !(w->failed = true);
    w->data = data;
    w->capacity = capacity;
    return true;
}

static void varint(wire *w, uint64_t v)
{
    if (!reserve_bytes(w, LONGEST_VARINT)) return;
    for (; v > 127; v >>= 7) w->data[w->used++] = (uint8_t)(v | 128);
    w->data[w->used++] = (uint8_t)v;
}

void wire_int(wire *w, unsigned field, uint64_t v)
{
    varint(w, field << 3 | NUMBER);
    varint(w, v);
}

void wire_head(wire *w, unsigned field, uint64_t bytes)
{
    varint(w, field << 3 | BYTES);
    varint(w, bytes);
}

static void wire_bytes(wire *w, unsigned field, const void *data, size_t bytes)
{
    wire_head(w, field, bytes);
    if (bytes == 0 || !reserve_bytes(w, bytes)) return;
    memcpy(w->data + w->used, data, bytes);
    w->used += bytes;
}

void wire_text(wire *w, unsigned field, const char *text)
{
    wire_bytes(w, field, text, strlen(text));
}

void wire_message(wire *w, unsigned field, const wire *inner)
{
    w->failed = w->failed || inner->failed;
    wire_bytes(w, field, inner->data, inner->used);
}

void wire_free(wire *w)
{
    free(w->data);
    *w = (wire){0};
}
