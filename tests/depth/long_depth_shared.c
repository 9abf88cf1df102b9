/* A small trained character model: no layer but one, by every kind. */
#include "depth_texts.h"

/* The reference: pool .0285, linear .0616, zero .2729 nats above the model. */
static void the_best_of_all_kinds_is_as_good_as_each(void **state)
{
    (void)state;
    NEED_SHARED(CHARACTERS);
    task l;
    open_characters(&l);
    const double base = nats(&l, l.m);
    const double pool = nats_of_cut(&l, PARE_ATTN_POOL, 1, PARE_DEPTH_GREEDY) - base;
    const double linear = nats_of_cut(&l, PARE_ATTN_LINEAR, 1, PARE_DEPTH_GREEDY) - base;
    const double zero = nats_of_cut(&l, PARE_ATTN_ZERO, 1, PARE_DEPTH_GREEDY) - base;
    const double any = nats_of_cut(&l, PARE_ATTN_NONE, 1, PARE_DEPTH_GREEDY) - base;
    print_message("above %.4f nats: pool %.4f, linear %.4f, zero %.4f, auto %.4f\n", base, pool,
                  linear, zero, any);
    assert_true(any <= fmin(pool, fmin(linear, zero)) + 1e-9);
    assert_near(zero, 0.2729, 0.01);
    close_characters(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_of_all_kinds_is_as_good_as_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
