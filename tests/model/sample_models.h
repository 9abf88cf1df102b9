/* sample_models.h - one small file of every foreign kind. */
#ifndef SAMPLE_MODELS_H
#define SAMPLE_MODELS_H
#include "base/array.h"
#include "naive.h"

static inline void sample_gpt2(const char *path)
{
    store s = store_new();
    make(&s, "wte.weight", 3, 4, 0);
    make(&s, "wpe.weight", 3, 4, 0);
    make(&s, "h.0.ln_1.weight", 4, 0, 0);
    make(&s, "h.0.ln_2.weight", 4, 0, 0);
    make(&s, "h.0.attn.c_attn.weight", 4, 12, 0);
    make(&s, "h.0.attn.c_proj.weight", 4, 4, 0);
    make(&s, "h.0.mlp.c_fc.weight", 4, 5, 0);
    make(&s, "h.0.mlp.c_proj.weight", 5, 4, 0);
    make(&s, "ln_f.weight", 4, 0, 0);
    write_tensors(&s, path, 0, s.n, PARE_F32,
                  "{\"heads\":\"2\",\"act\":\"relu\",\"norm\":\"eps 1e-3\"}", 0);
    pare_arena_free(s.a);
}

static inline void sample_bin(const char *path)
{
    const int32_t header[7] = {4, 3, 1, 2, 1, 3, 5};
    const size_t floats = 3 * 4 + 4 + 16 + 8 + 8 + 16 + 4 + 3 * 12 + 4 + 2 * 5;
    uint8_t bytes[1024] = {0};
    memcpy(bytes, header, sizeof header);
    test_write_file(path, bytes, sizeof header + 4 * floats);
}

static inline void sample_npz(const char *path)
{
    static const double w[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const int64_t one = 1;
    static const char *const names[] = {"n_layers", "L0.n_heads", "L0.H0.Wq",    "L0.H0.Wk",
                                        "L0.H0.Wv", "L0.W1",      "L0.H0.scale", "L0.W2"};
    const pare_array square = {.dtype = PARE_F64, .ndim = 2, .shape = {3, 3}, .data = w};
    const pare_array scalar = {.dtype = PARE_I64, .data = &one};
    const pare_array arrays[] = {scalar, scalar, square, square, square, square, scalar, square};
    pare_err err = {0};
    assert_ok(pare_npz_write(path, 8, names, arrays, false, true, &err), &err);
}
#endif
