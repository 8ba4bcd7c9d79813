"""The streams of the language, and the steps that users write behind them."""
