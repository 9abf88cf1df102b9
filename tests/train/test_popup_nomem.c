/* Every allocation of a search for a mask, and of its ticket, fails once: a status, no crash, no
 * leak. */
#include "tiny_task.h"
#include <fail_alloc.h>
#include <pare/train.h>

typedef struct scene {
    tiny t;
    pare_train_opts o;
    pare_popup popup;
    pare_frozen_gpt from;
} scene;

static pare_status start(pare_model **out, const scene *s, pare_err *err)
{
    const pare_init o = {.kind = PARE_INIT_GPT,
                         .dim = 8,
                         .layers = 1,
                         .heads = 2,
                         .vocab = TINY_VOCAB,
                         .context = TINY_TOKENS,
                         .source = &s->from};
    return pare_init_model(out, &o, err);
}

static pare_status search(scene *s, pare_err *err)
{
    pare_model *m = NULL, *from = NULL;
    pare_train_result r;
    pare_status st = start(&from, s, err);
    if (!st) st = pare_train(&m, &r, from, &s->t.task, &s->o, NULL, err);
    assert_true(!m == (st != PARE_OK));
    if (!st) st = pare_popup_code(m, &s->from, err);
    pare_model_free(from);
    pare_model_free(m);
    return st;
}

static void a_search_without_memory_says_so(void **state)
{
    (void)state;
    scene s = {.popup = {0.3}, .from = {PARE_FROZEN_NORMAL, 1, 2}};
    tiny_open(&s.t, PARE_RANDOM_GPT, 1);
    s.o = tiny_opts(2);
    s.o.popup = &s.popup;
    for (long n = 0;; n++) {
        pare_err err = {0};
        fail_alloc_once(n);
        const pare_status st = search(&s, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_once(-1);
        if (hit) {
            assert_status(st, PARE_ERR_MEMORY, &err);
            continue;
        }
        assert_ok(st, &err);
        assert_true(n > 20);
        break;
    }
    tiny_close(&s.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_search_without_memory_says_so)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
