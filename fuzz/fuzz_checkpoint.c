/* Checkpoints of a run with two values and one running figure. The checksum is made true, so that a
 * change gets behind it; what is accepted is a state that a run can be in, and nothing is taken
 * from what is refused. */
#include "../src/train/checkpoint.h"
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = PARE_SHA256_HEX - 1, STEPS = 100 };

typedef struct state {
    float values[2], m[2], v[2], best[2], stats[1], best_stats[1];
    checkpoint c;
} state;

static void state_empty(state *s)
{
    memset(s, 0, sizeof *s);
    s->c = (checkpoint){.count = 2,
                        .nstats = 1,
                        .values = s->values,
                        .m = s->m,
                        .v = s->v,
                        .best_values = s->best,
                        .stats = s->stats,
                        .best_stats = s->best_stats};
}

static uint8_t *sealed(const uint8_t *data, size_t size)
{
    char hex[PARE_SHA256_HEX];
    uint8_t *const copy = malloc(size ? size : 1);
    FUZZ_EXPECT(copy);
    if (size) memcpy(copy, data, size);
    if (size < DIGITS) return copy;
    FUZZ_EXPECT(pare_sha256_of(hex, copy, size - DIGITS, NULL) == PARE_OK);
    memcpy(copy + size - DIGITS, hex, DIGITS);
    return copy;
}

static void expect_good(const state *s)
{
    FUZZ_EXPECT(s->c.step <= STEPS && s->c.best_step <= s->c.step);
    for (size_t i = 0; i < 2; i++)
        FUZZ_EXPECT(isfinite(s->values[i]) && isfinite(s->m[i]) && isfinite(s->v[i]) &&
                    isfinite(s->best[i]));
    FUZZ_EXPECT(isfinite(s->stats[0]) && isfinite(s->best_stats[0]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float nothing[2] = {0};
    pare_err err = {0};
    state s;
    uint8_t *const file = sealed(data, size);
    cJSON *const run = cJSON_CreateObject();
    FUZZ_EXPECT(run && pare_json_add_string(run, "lesson", "x") &&
                pare_json_add_number(run, "lr", 0.1));
    state_empty(&s);
    fuzz_file("run.ckpt", file, size);
    const pare_status st = checkpoint_read(&s.c, "run.ckpt", run, STEPS, &err);
    fuzz_expect_said(st, &err);
    if (st)
        FUZZ_EXPECT(memcmp(s.values, nothing, sizeof nothing) == 0 && s.c.step == 0);
    else
        expect_good(&s);
    fuzz_no_files();
    cJSON_Delete(run);
    free(file);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_safetensors(data, size, max_size, seed);
}
