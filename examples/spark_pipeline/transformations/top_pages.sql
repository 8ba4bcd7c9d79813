-- The pages that were looked at most in each hour, with their titles.
CREATE MATERIALIZED VIEW top_pages AS
SELECT window_start AS hour, rank, page, title, clicks
FROM top_log JOIN pages USING (page)
