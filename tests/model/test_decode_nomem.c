/* Every allocation of a decoder fails once: a status, no crash, no leak; and a step makes none. */
#include <enclose_models.h>
#include <fail_alloc.h>
#include "model/decode_state.h"

enum { MODELS = 40, TOKENS = 6 };

static void any_failing_allocation_is_a_status(void **state)
{
    (void)state;
    size_t done = 0, failures = 0;
    for (uint64_t seed = 1; done < MODELS; seed++) {
        pare_model *const m = some_model(seed, 1);
        for (long n = 0; !pare_decoder_refuses(m); n++) {
            pare_decoder *d = NULL;
            pare_err err = {0};
            fail_alloc_after(n);
            const pare_status st = pare_decoder_new_texts(&d, m, 3, 0, NULL, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            pare_decoder_free(d);
            if (!hit) {
                assert_ok(st, &err);
                done++;
                break;
            }
            assert_status(st, PARE_ERR_MEMORY, &err);
            assert_null(d);
            failures++;
        }
        pare_model_free(m);
    }
    assert_true(failures > MODELS);
}

static void reading_tokens_allocates_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1, done = 0; done < MODELS; seed++) {
        pare_model *const m = some_model(seed, 1);
        if (!pare_decoder_refuses(m)) {
            const int64_t ids[TOKENS] = {1, 2, 3, 4, 5, 6};
            const size_t both[] = {0, 1};
            const float *logits;
            size_t ld;
            pare_decoder *d = NULL;
            pare_err err = {0};
            assert_ok(pare_decoder_new_texts(&d, m, 2, 0, NULL, &err), &err);
            fail_alloc_after(0);
            assert_ok(pare_decoder_feed(d, ids, TOKENS, &logits, &err), &err);
            assert_ok(pare_decoder_step(d, 0, &logits, &err), &err);
            assert_ok(pare_decoder_step_texts(d, both, ids, 2, &logits, &ld, &err), &err);
            assert_false(fail_alloc_hit());
            fail_alloc_after(-1);
            pare_decoder_free(d);
            done++;
        }
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failing_allocation_is_a_status),
        cmocka_unit_test(reading_tokens_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
