// A European call by Monte Carlo: Box-Muller with antithetic pairs. One path at each index.
#include "tessera.cuh"

extern "C" __constant__ double spot = 100, strike = 105, rate = 0.05, volatility = 0.2, years = 1;

extern "C" __global__ void compute(TesseraChunk chunk) {
    const TesseraIndex at = tessera_index(chunk);
    if (!at.valid) return;
    const double first = 1.0 - tessera_uniform_double(chunk, at, 0);
    const double second = tessera_uniform_double(chunk, at, 1);
    const double normal = sqrt(-2.0 * log(first)) * cospi(2.0 * second);
    const double drift = (rate - 0.5 * volatility * volatility) * years;
    double payoff = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        const double end = spot * exp(drift + sign * volatility * sqrt(years) * normal);
        payoff += 0.5 * exp(-rate * years) * fmax(end - strike, 0.0);
    }
    tessera_store(chunk, at, 0, payoff);
}
