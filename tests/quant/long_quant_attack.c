/* Tests src/quant/verify.c: the attack on certificates of quantized models, all of it. */
#include "quant_attack.h"

static void no_certificate_is_broken(void **state)
{
    (void)state;
    qa_many(1, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_certificate_is_broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
