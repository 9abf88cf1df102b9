/* onnx.h - an ONNX file as it is being made: nodes, constants, and what goes in and out.
 *
 * A value is its name. The first failure stays: every call after it does nothing and gives NULL,
 * so that a graph reads like the formula it is, and onnx_write says what went wrong. */
#ifndef PARE_SRC_ONNX_H
#define PARE_SRC_ONNX_H
#include <pare/linalg.h>

/* ---- protobuf: fields of a message, one after the other (onnx_wire.c) ------------------------ */

typedef struct wire {
    uint8_t *data;
    size_t used, capacity;
    bool failed; /* memory was out */
} wire;

void wire_int(wire *w, unsigned field, uint64_t v);
void wire_text(wire *w, unsigned field, const char *text);
void wire_message(wire *w, unsigned field, const wire *inner);
/* The head of a field of that many bytes, which follow by another way. */
void wire_head(wire *w, unsigned field, uint64_t bytes);
void wire_free(wire *w);

/* ---- a graph (onnx_graph.c) ------------------------------------------------------------------ */

enum { /* TensorProto.DataType */
       ONNX_FLOAT = 1,
       ONNX_INT8 = 3,
       ONNX_INT64 = 7,
       ONNX_DOUBLE = 11,
       ONNX_UINT4 = 21,
       ONNX_INT4 = 22
};
/* What ONNX 1.12 and ONNX Runtime 1.12 read, and what integers of 4 bits need (ONNX 1.16, ONNX
 * Runtime 1.18). */
enum { ONNX_OPSET = 17, ONNX_OPSET_INT4 = 21 };

typedef const char *value;

typedef struct onnx_tensor onnx_tensor;
typedef struct onnx {
    pare_arena *arena;
    pare_err *err;
    pare_status st; /* the first failure */
    wire nodes, ends;
    onnx_tensor *tensors; /* newest first */
    size_t count;         /* of values that were named by number */
    int opset;            /* 0: ONNX_OPSET */
} onnx;

/* One attribute of a node: a number, or (list) up to six. */
typedef struct attribute {
    const char *name; /* NULL: none */
    bool list;
    size_t n;
    int64_t v[6];
} attribute;
#define NO_ATTRIBUTE          ((attribute){0})
#define ONE_NUMBER(name, x)   ((attribute){name, false, 1, {x}})
#define NUMBERS(name, n, ...) ((attribute){name, true, n, {__VA_ARGS__}})

/* A node with one output, which is named here. */
value onnx_node(onnx *g, const char *op, const value *in, size_t n, attribute a);
value onnx_op1(onnx *g, const char *op, value a);
value onnx_op2(onnx *g, const char *op, value a, value b);
value onnx_op3(onnx *g, const char *op, value a, value b, value c);
/* An output by the name it is to have. */
void onnx_rename(onnx *g, value from, const char *to);

/* Constants. Equal lists of whole numbers are one constant. */
value onnx_numbers(onnx *g, size_t n, const int64_t *v);
/* A list of any length, by a name that no weight has. */
value onnx_list(onnx *g, const char *name, size_t n, const int64_t *v);
value onnx_number(onnx *g, int64_t v); /* a scalar */
value onnx_real(onnx *g, double v);    /* a scalar, f32 */
value onnx_vector(onnx *g, const double *v, size_t n, int type);
/* A stored weight as f32, borrowed until the file is written. */
typedef enum onnx_form {
    ONNX_ROW,
    ONNX_MATRIX,
    ONNX_TRANSPOSED
} onnx_form; /* transposed: [in, out] */
value onnx_weight(onnx *g, const char *name, const pare_weight *w, onnx_form form);

/* The integers of a quantized matrix, borrowed as well: rows are its groups, one after the other,
 * zeros where the last one of a row has fewer. In 4 bits where they fit, which needs
 * ONNX_OPSET_INT4. */
value onnx_integers(onnx *g, const char *name, const pare_int_groups *ints);
/* Over these axes, which stay with length 1: "ReduceMean", "ReduceMax" or "ReduceL2". */
value onnx_reduce(onnx *g, const char *op, value a, int64_t axis);

/* What goes in and comes out; a dimension is a number, or a word for one that is free. */
typedef struct dimension {
    const char *word;
    size_t n;
} dimension;
typedef enum onnx_end { ONNX_INPUT = 11, ONNX_OUTPUT = 12 } onnx_end;
void onnx_value(onnx *g, onnx_end end, const char *name, int type, const dimension *d, size_t n);

/* Fails with these words unless something has failed before. */
void onnx_fail(onnx *g, pare_status st, const char *fmt, ...) PARE_PRINTF(3, 4);
void onnx_no_memory(onnx *g);
/* The file, whole or not at all; *bytes may be NULL. Gives the first failure where there is one. */
PARE_MUST_USE pare_status onnx_write(onnx *g, const char *graph_name, const char *path,
                                     bool overwrite, uint64_t *bytes);
void onnx_free(onnx *g);
#endif
